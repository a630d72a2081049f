#include "src/cli/json_text.hpp"

namespace arenite::cli {

std::string line_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace arenite::cli
