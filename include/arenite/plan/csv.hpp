// Planning problems as tables, in the form that the field exchanges them: a row a buffer.
//
//   id,lower,upper,size
//   x,0,3,4096
//   y,3,5,8192
//
// Columns, in any order: `id`; `lower` and `upper`, the half-open lifetime, or `end` instead of
// `upper` for the last moment of it; `size` in bytes; optional are `alignment` (bytes), `space`
// ("cpu:0/host"), `gaps`, times within the lifetime at which others may have the bytes ("4-6 9-12",
// with `end` the last moments here too), `alias`, one word for all that begin at the same place,
// and `offset`, which gives the buffer its place where the field is not empty. Other columns are
// kept and ignored. Rows may come in any order. Fields may be in double quotes; what is between
// rows or around fields, spaces and carriage returns, does not count.
//
// Safe from any thread.
#pragma once

#include <arenite/plan/plan.hpp>
#include <arenite/plan/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace arenite::plan {

/// Files and texts above this many bytes are refused.
inline constexpr std::size_t max_csv_bytes = std::size_t{256} << 20;

/// The buffers of a table, in its order. `alignment` is that of rows without one of their own.
/// Throws Error with the line and the column of what is wrong; `where` names the text.
Problem read_csv(std::string_view text, std::string_view where, std::int64_t alignment = 1);

/// The same table with an `offset` in every row: those of the plan, matched by id. Throws Error on
/// a text that read_csv refuses, and where the plan lacks a buffer.
std::string write_csv(std::string_view text, std::string_view where, const Plan& plan);

/// A table of a plan's buffers: id,lower,upper,size,alignment,space,offset, and gaps and alias
/// where there are any. Throws Error on a name with a line break, which a table cannot hold.
std::string write_csv(const Plan& plan);

}  // namespace arenite::plan
