// Where a record comes from: the machine, the day and the command.
//
//   Record record{.program = "program", .command = record::command_line("program", argc, argv)};
//   record::describe_machine(record, *DeviceRef(0).name(), *driver_version(), is_simulated());
//
// Thread-safe.
#pragma once

#include <string>

#include "cgrt/record/record.h"

namespace cgrt::record {

// Fills date, device, driver, cuda and simulated. `cuda_version` is as CUDA writes it: 13000 is 13.0.
void describe_machine(Record& record, std::string device, int cuda_version, bool is_simulated);

// The program and its arguments as they were given.
std::string command_line(const char* program, int argc, const char* const* argv);

// Today in UTC: "2026-11-21".
std::string utc_date();

// The release of this machine's kernel driver, which CUDA itself does not tell; "unknown" without one.
std::string kernel_driver_version();

}  // namespace cgrt::record
