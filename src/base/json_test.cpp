#include "src/base/json.hpp"

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <limits>
#include <nlohmann/json.hpp>

namespace arenite {
namespace {

TEST(Json, KeepsMembersInTheirOrder) {
  Json json{{"z", 1}, {"a", {{"inner", nullptr}}}, {"list", Json::list(1, "two", 3.0)}};
  json["a"]["more"] = true;
  json["list"].push_back({{"x", -1}});
  json["none yet"];
  EXPECT_EQ(json.dump(), R"({"z":1,"a":{"inner":null,"more":true},"list":[1,"two",3.0,{"x":-1}],)"
                         R"("none yet":null})");
  Json other{{"z", 1}, {"a", 2}};
  other.update({{"z", 3}, {"b", 4}});
  EXPECT_EQ(other.dump(), R"({"z":3,"a":2,"b":4})");
}

TEST(Json, NullBecomesWhatIsPutIntoIt) {
  Json list, object;
  list.push_back(1);
  object["a"] = 1;
  EXPECT_EQ(list.dump() + object.dump(), R"([1]{"a":1})");
  EXPECT_EQ(Json::list().dump() + Json::object().dump() + Json().dump(), "[]{}null");
}

TEST(Json, TakesWhatProgramsHave) {
  EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).dump(), R"(["a","b"])");
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).dump(), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).dump(), "18446744073709551615");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
  EXPECT_EQ(Json(0.1).dump() + " " + Json(1e300).dump() + " " + Json(-0.0).dump(),
            "0.1 1e+300 -0.0");
}

TEST(Json, IsPrintedAsTheLibraryPrintsIt) {
  const char* text = R"({"a":[],"b":{},"c":[1,[2.5,{"d":"\u0001\"\\é\n"}]],"e":-7,"f":1e-7})";
  const auto library = nlohmann::ordered_json::parse(text);
  const Json json = parse_json(text);
  EXPECT_EQ(json.dump(), library.dump());
  EXPECT_EQ(json.dump({.indent = 1}), library.dump(1));
  EXPECT_EQ(json.dump({.indent = 3, .ascii = true}), library.dump(3, ' ', true));
}

TEST(Json, ReplacesOrRefusesWhatIsNotUtf8) {
  const Json json{{"na\xffme", "\xc3"}};
  EXPECT_EQ(json.dump({.replace = true}), "{\"na\uFFFDme\":\"\uFFFD\"}");
  EXPECT_ERROR("a text that is not UTF-8: \"na\\ufffdme\"; expected UTF-8 text", json.dump());
}

TEST(Json, ReadsBackToWhatItWas) {
  const Json json{{"natural", std::numeric_limits<std::uint64_t>::max()},
                  {"least", std::numeric_limits<std::int64_t>::min()},
                  {"third", 1.0 / 3},
                  {"texts", Json::list("", "\"", "ÿ")},
                  {"no", false},
                  {"nothing", nullptr}};
  EXPECT_EQ(parse_json(json.dump()), json);
  EXPECT_EQ(parse_json(json.dump({.indent = 2, .ascii = true})), json);
  EXPECT_EQ(json.at("natural").get<std::int64_t>(), nullptr);
  EXPECT_EQ(json.at("natural").number(), 0x1p64);
}

TEST(Json, SaysWhatItIsWhereSomethingElseWasExpected) {
  const Json json{{"text", "seven"}, {"list", Json::list(1)}};
  EXPECT_ERROR("no field 'txt'; expected one", json.at("txt"));
  EXPECT_ERROR("\"seven\"; expected an integer", json.at("text").integer());
  EXPECT_ERROR("a value of type array; expected a string", json.at("list").text());
  EXPECT_ERROR("no item 1; expected one of 1", json.at("list").at(1));
  EXPECT_ERROR("1; expected an object", json.at("list").at(0).find("a"));
  EXPECT_ERROR("\"seven\"; expected an array", Json(json.at("text")).push_back(1));
  EXPECT_ERROR("expected one of 0", Json::list().back());
}

TEST(Json, SaysWhereATextIsNone) {
  EXPECT_ERROR("t, byte 6: ", parse_json("{\"a\": }", "t"));
  EXPECT_ERROR("field \"a\" twice in one object", parse_json(R"({"a": 1, "b": {"a": 1}, "a": 2})"));
  EXPECT_ERROR("number overflow parsing '1e999'", parse_json("[1e999]"));
  EXPECT_ERROR("byte 2", parse_json("\"\xc3\""));
}

TEST(Json, TakesWhatItIsMadeOfWithoutACopy) {
  Json list = Json::list("a text that is too long to be kept within the value itself");
  const char* text = list.at(0).text().data();
  const Json outer{{"middle", {{"list", std::move(list)}}}};
  EXPECT_EQ(outer.at("middle").at("list").at(0).text().data(), text);
}

TEST(Json, IsNotParsedDeeperThanEightLevels) {
  EXPECT_EQ(parse_json("[[[[[[[[1]]]]]]]]").dump(), "[[[[[[[[1]]]]]]]]");
  EXPECT_ERROR("t: values nested deeper than 8; expected a plan, which needs 3 levels",
               parse_json("[[[[[[[[[1]]]]]]]]]", "t", 3, "a plan"));
  EXPECT_ERROR("nested deeper than 8", parse_json(std::string(1 << 20, '[')));
}

}  // namespace
}  // namespace arenite
