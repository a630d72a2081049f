// script_errors.txt: every rule of scripts that people may break, by a script that breaks it, with
// the exact message, over the operators of the framework.
#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace arenite {
namespace {

const std::string input = "$1 = InputTensor(x, float32, [2, 3]);\n";
const std::string typed =
    "$2 = InputTensor(d, float64, [2, 3]); $3 = InputTensor(n, int64, [1]); "
    "$4 = InputTensor(i, int32, [2, 3]); $5 = InputTensor(s, float32, []); "
    "$6 = InputTensor(b, uint8, [2, 3]);\n";

std::string without_escapes(const std::string& line) {
  if (line == "(nothing)") return {};
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\\';
    if (escape) ++i;
    text += escape && line.at(i) == 'n' ? '\n' : line.at(i);
  }
  return text;
}

std::string message_of(const std::string& script) {
  try {
    graph::parse(script, operators(), "s");
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ScriptErrors, SayWhatWasFoundAndWhatWasExpected) {
  std::ifstream file(ARENITE_SOURCE_DIR "/tests/script_errors.txt");
  std::string line, section, above, script;
  int sections = 0, checked = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("== ")) {
      section = line.substr(3);
      above = section.ends_with(", typed") ? typed : "";
      ++sections;
    } else if (sections == 0 || line.empty()) {
      continue;
    } else if (line.starts_with("  ")) {
      EXPECT_EQ(message_of(input + above + script), "s:" + line.substr(2))
          << section << ": " << script;
      ++checked;
    } else {
      script = without_escapes(line);
    }
  }
  EXPECT_GE(sections, 10);
  EXPECT_GE(checked, 200);
}

}  // namespace
}  // namespace arenite
