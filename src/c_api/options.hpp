// A model's options by the names that C gives them.
#pragma once

#include <arenite/model.hpp>

#include <string_view>

namespace arenite::c_api {

/// Throws Error on a name that there is not, and on a value that it does not have.
void set_option(ModelOptions& options, std::string_view name, std::string_view value);

}  // namespace arenite::c_api
