// Parts that variants and incidents have in common: threads, tensors, modules, gates.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "report/decode/definitions.h"
#include "report/report.pb.h"

namespace attntrace {

// "name (tid)"; empty where the thread is not known.
std::string ThreadName(const Definitions& definitions, uint32_t id);

// Nothing where the tensor is not there.
void AddTensor(const spool::TensorDef& def, const char* role, google::protobuf::RepeatedPtrField<Tensor>* tensors);

// Leaves `module` as it is where nothing defines the id.
void FillModule(const Definitions& definitions, uint32_t id, Module* module);

// In the order in which they were met.
void FillGates(const Definitions& definitions, absl::Span<const spool::GateDef* const> records,
               google::protobuf::RepeatedPtrField<Gate>* out);

}  // namespace attntrace
