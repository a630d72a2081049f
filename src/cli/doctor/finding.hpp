// What a check of `arenite doctor` found.
#pragma once

#include <arenite/error.hpp>

#include "src/base/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::cli::doctor {

enum class Mark : std::uint8_t {
  ok,
  note,   ///< works, but could be better
  fails,  ///< something that is needed does not work
};

std::string_view to_string(Mark mark) noexcept;

struct Problem {
  Mark mark = Mark::note;
  std::string what;
  std::string mend;  ///< how, in one line; empty where nobody needs to
};

struct Finding {
  std::string says;                  ///< in one line
  std::vector<std::string> details;  ///< a line each
  std::vector<Problem> problems;
  Json facts = Json::object();  ///< the same for programs

  void note(std::string what, std::string mend) {
    problems.push_back({Mark::note, std::move(what), std::move(mend)});
  }
  void fails(std::string what, std::string mend) {
    problems.push_back({Mark::fails, std::move(what), std::move(mend)});
  }
  void fails(const ErrorText& error);
  Mark mark() const noexcept;  ///< the worst of the problems'
};

/// "0 KiB", "10.48 MiB", "1.5 GiB"
std::string bytes_text(std::uint64_t bytes);

Json to_json(const Finding& finding);
/// What to_json() made. Throws Error on anything else.
Finding from_json(const Json& json);

}  // namespace arenite::cli::doctor
