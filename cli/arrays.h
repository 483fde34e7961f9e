// Arrays of a problem as options of a command, and what their shapes say of the problem.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "omniconv/plan.h"

namespace omniconv::cli {

// By the array's name, those that were given.
using ArrayFiles = std::map<std::string, std::string>;

// An option for each array that any operation has.
void add_array_options(CLI::App& app, ArrayFiles& files);

// The files by the names that the problem's arrays have: an alias, such as y0, is that of the array which it is of.
ArrayFiles by_name(const Problem& problem, ArrayFiles files);

// The text's problem; extents that it leaves out are those of the arrays in the files. Throws where two arrays, or an
// array and the text, say different things, and where something is left open.
Problem completed_problem(const std::string& text, const ArrayFiles& files);

// Throws for files that the problem does not read or write, for inputs that are missing, and for two that are both the
// standard input.
void check_files(const Problem& problem, const std::vector<ArraySpec>& arrays, const ArrayFiles& files);

}  // namespace omniconv::cli
