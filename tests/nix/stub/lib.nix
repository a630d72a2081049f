# Functions of nixpkgs' lib: their names, arguments and results, as far as they are used.
let
  checked =
    type: value:
    if builtins.typeOf value == type then
      value
    else
      throw "expected a ${type}, got a ${builtins.typeOf value}";

  optionals = condition: list: if checked "bool" condition then checked "list" list else [ ];

  getOutput = output: package: package.${output} or package.out or package;

  # A file set is a function that tells whether a path is in it.
  coerce =
    value:
    if builtins.isFunction value then
      value
    else if !builtins.isPath value then
      throw "lib.fileset: a file set is a path or was made by lib.fileset, not a ${builtins.typeOf value}"
    else if !builtins.pathExists value then
      throw "lib.fileset: ${toString value} does not exist"
    else
      let
        base = toString value;
        length = builtins.stringLength base;
      in
      path: path == base || builtins.substring 0 (length + 1) path == base + "/";

  fileset = {
    maybeMissing =
      path: if builtins.pathExists (checked "path" path) then coerce path else _: false;

    unions =
      sets:
      let
        members = map coerce (checked "list" sets);
      in
      path: builtins.any (member: member path) members;

    difference =
      whole: part:
      let
        inWhole = coerce whole;
        inPart = coerce part;
      in
      path: inWhole path && !(inPart path);

    toSource =
      { root, fileset }:
      let
        isMember = coerce fileset;
      in
      {
        outPath = builtins.path {
          path = checked "path" root;
          name = "source";
          filter = path: type: isMember path || type == "directory" && holdsSome isMember path;
        };
      };
  };

  # A folder of which nothing is in the set does not come along.
  holdsSome =
    isMember: folder:
    let
      entries = builtins.readDir folder;
      isIn =
        name:
        isMember "${folder}/${name}"
        || entries.${name} == "directory" && holdsSome isMember "${folder}/${name}";
    in
    builtins.any isIn (builtins.attrNames entries);
in
{
  inherit fileset getOutput optionals;

  genAttrs =
    names: value:
    builtins.listToAttrs (
      map (name: {
        inherit name;
        value = value name;
      }) names
    );
  mapAttrs = builtins.mapAttrs;
  head = builtins.head;

  optional = condition: value: optionals condition [ value ];
  optionalString = condition: string: if checked "bool" condition then checked "string" string else "";
  optionalAttrs = condition: set: if checked "bool" condition then checked "set" set else { };

  cmakeBool = name: value: "-D${checked "string" name}:BOOL=${if checked "bool" value then "TRUE" else "FALSE"}";
  cmakeFeature = name: value: "-D${checked "string" name}:STRING=${checked "string" value}";

  removePrefix =
    prefix: string:
    let
      length = builtins.stringLength prefix;
    in
    if builtins.substring 0 length string == prefix then
      builtins.substring length (builtins.stringLength string) string
    else
      string;

  getBin = getOutput "bin";
  getExe =
    package:
    let
      program = package.meta.mainProgram or (throw "lib.getExe: ${package.name} has no meta.mainProgram");
    in
    "${getOutput "bin" package}/bin/${program}";
  makeBinPath = packages: builtins.concatStringsSep ":" (map (package: "${getOutput "bin" package}/bin") packages);

  licenses = builtins.mapAttrs (_: free: { inherit free; }) {
    gpl2Plus = true;
    lgpl21Plus = true;
    mit = true;
    unfree = false;
  };
  platforms.linux = [
    "aarch64-linux"
    "x86_64-linux"
  ];
}
