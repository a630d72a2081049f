// A picture of which classes are taken for which.
#pragma once

#include <arenite/train/classes.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace arenite::cli {

/// An SVG document: a row for each class, a column for what its samples are taken for, each field
/// the darker the larger its part of the row; green where it is right, red where not.
std::string picture_of(const train::Confusion& confusion, const std::string& title,
                       const std::function<std::string(std::int64_t)>& name_of);

}  // namespace arenite::cli
