// Command-line arguments of one command, by CLI11, with our errors.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracer/options.h"

namespace attntrace {

// Adds the options of the table, all or those of `keys`, so that they are set in `values`. `failure` receives what the table
// refuses; give it to ParseArguments. All three must outlive the parsing.
void AddOptions(CLI::App& app, const std::vector<absl::string_view>& keys, OptionValues* values, absl::Status* failure);

// True: go on. False: help was asked for and printed. InvalidArgument names what is wrong and where to read more.
absl::StatusOr<bool> ParseArguments(CLI::App& app, std::vector<std::string> arguments, const absl::Status* failure = nullptr);

// ATTNTRACE_OPTIONS of this process, under which the command line comes.
absl::Status SetFromEnvironment(OptionValues& values);

}  // namespace attntrace
