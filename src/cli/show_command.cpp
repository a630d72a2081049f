// `arenite show FILE`: what a checkpoint, or any other safetensors file, holds.
#include <arenite/error.hpp>

#include "src/cli/commands.hpp"
#include "src/cli/output.hpp"
#include "src/io/safetensors.hpp"
#include "src/train/checkpoint.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>

namespace arenite::cli {
namespace {

/// None where the file says nothing of a run.
std::optional<train::Checkpoint> run_of(const io::TensorFile& file, const std::string& path) {
  if (!train::is_checkpoint(file)) return std::nullopt;
  return train::checkpoint_of(file, path);
}

std::int64_t bytes_of(const io::TensorFile& file) {
  std::int64_t bytes = 0;
  for (const io::NamedTensor& tensor : file.tensors()) bytes += std::ssize(tensor.bytes);
  return bytes;
}

/// What a file says may hold anything, and is printed on terminals.
std::string printable(const std::string& text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::none_of(text, is_control)) return text;
  return Json(text).dump({.ascii = true, .replace = true});
}

Json json_of(const io::TensorFile& file, const std::optional<train::Checkpoint>& run) {
  Json tensors = Json::list();
  for (const io::NamedTensor& tensor : file.tensors()) {
    tensors.push_back(
        {{"name", tensor.name},
         {"type", std::string(to_string(tensor.type))},
         {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
         {"bytes", std::ssize(tensor.bytes)}});
  }
  Json json{{"tensors", std::move(tensors)}, {"bytes", bytes_of(file)}};
  if (run) {
    json["run"] = {{"steps", run->place.steps},
                   {"epochs", run->place.epochs},
                   {"samples", run->place.done},
                   {"identity", train::json_of(run->identity)},
                   {"numerics", train::json_of(run->numerics)}};
  } else {
    json["said"] = train::json_of(file.metadata());
  }
  return json;
}

void print_run(const train::Checkpoint& run) {
  std::cout << fmt::format("a run at step {}: {} epochs done", run.place.steps, run.place.epochs);
  if (run.place.done > 0) std::cout << fmt::format(", and {} samples of the next", run.place.done);
  std::cout << '\n';
  for (const train::Facts* const facts : {&run.identity, &run.numerics}) {
    for (const auto& [name, text] : *facts)
      std::cout << fmt::format("  {:<13} {}\n", printable(name), printable(text));
  }
}

void print_tensors(const io::TensorFile& file) {
  std::size_t longest = 0;
  for (const io::NamedTensor& tensor : file.tensors())
    longest = std::max(longest, printable(tensor.name).size());
  for (const io::NamedTensor& tensor : file.tensors()) {
    std::cout << fmt::format("  {:<{}}  {:<7}  {:<18} {:>12}\n", printable(tensor.name), longest,
                             to_string(tensor.type), to_string(tensor.shape), tensor.bytes.size());
  }
}

}  // namespace

Command* add_show_options(Command& app, ShowArguments& a) {
  Command& show = add_command(app, "show", "List what a checkpoint holds, and check it");
  show.about = {
      "Any file in the safetensors format of F64, F32, I64, I32 and U8 will do. Of one that "
      "training has saved it says how far "
      "the run is, and what it has to have in common with one that goes on with it."};
  show.add_path("FILE", a.file, "FILE", "a file in the safetensors format")->required();
  show.add_switch("--script", a.script,
                  "print the network of a run as a script (docs/scripts.md), and nothing else");
  show.add_switch("--json", a.json, "as a JSON object (docs/command-line.md)");
  show.examples = {{"show run.st", "how far the run is, and its tensors"},
                   {"show run.st --script > net.arenite", "its network, for train --script"}};
  show.statuses = {{exit_ok, "the file is whole, and this is what it holds"},
                   {exit_bad_input, "wrong arguments, or a file that is damaged or none of these"}};
  show.read_on = "docs/checkpoints.md";
  return &show;
}

int run_show(const ShowArguments& a) {
  const io::TensorFile file(a.file);
  const std::optional<train::Checkpoint> run = run_of(file, a.file);
  if (a.script) {
    const std::string* const script = file.said(train::script_name);
    if (script == nullptr)
      fail({.found = "a file without a network",
            .expected = "a run, as train --save writes it",
            .where = a.file});
    std::cout << *script;
    return exit_ok;
  }
  if (a.json) {
    std::cout << line_of(json_of(file, run));
    return exit_ok;
  }
  std::cout << fmt::format("{}: {} tensors of {} bytes in sum, {}\n", a.file, file.tensors().size(),
                           bytes_of(file),
                           file.has_checksum() ? "undamaged" : "without a checksum");
  if (run) {
    print_run(*run);
  } else {
    for (const auto& [name, text] : file.metadata())
      std::cout << fmt::format("  {}: {}\n", printable(name), printable(text));
  }
  print_tensors(file);
  return exit_ok;
}

}  // namespace arenite::cli
