// Which attention implementation was asked for when a Transformers model was made: one for all, or one for each part. Its
// configuration holds only what came of that, and two ways lead there, of which one is meant.
//
// Seen where the model's weights are drawn: the frames that make it hold the request. Only reads.
#pragma once

#include "collectors/module_facts.h"
#include "collectors/python_api.h"

namespace attntrace {

// An operator that fills new weights with random numbers starts. Looks at the stack a bounded number of times in a process's
// life.
void NoteConstruction() noexcept;

// Fills `requested` and `requested_by` for the part with facts->config_class of the model `root`. Needs the GIL.
void ReadRequest(python::Object* root, python::Object* root_config, ModuleFacts* facts) noexcept;

}  // namespace attntrace
