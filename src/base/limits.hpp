// Asks the system beforehand for what libraries take without asking: they end the process, or jump
// to nowhere, where `ulimit` refuses it.
#pragma once

#include <cstddef>
#include <string>

namespace arenite {

/// Throws Failure where a limit of address space (`ulimit -v`) leaves less than so many bytes.
/// `whose` are they: "StarPU".
void expect_address_space(std::size_t bytes, const std::string& whose);

/// Throws Failure where the system refuses so many more threads, of the stack that threads get, or
/// leaves less than `bytes` of address space beside them.
void expect_threads(std::size_t count, std::size_t bytes, const std::string& whose);

}  // namespace arenite
