// Which attention implementation was asked for when a Transformers model was made: one for all, or one for each part. Its
// configuration holds only what came of that, and two ways lead there, of which one is meant.
//
// Seen where the model's weights are drawn, or as from_pretrained opens the configuration: the frames hold the request. Where
// it went into the configuration instead, that is read while the model is made. One that set_attn_implementation brings
// later is seen as that opens the sources of the classes (Transformers 4), or that it was made is known of the class (5). Only
// reads.
#pragma once

#include "collectors/module_facts.h"
#include "collectors/python_api.h"

namespace attntrace {

// An operator that fills new weights with random numbers starts. Looks at the stack a bounded number of times in a process's
// life.
void NoteConstruction() noexcept;

// A file that is named as Transformers names configurations is opened; a Python source is. Both need the GIL.
void NoteLoading() noexcept;
void NoteReselection() noexcept;

// Fills `part_config`, `requested` and `requested_by` for the part of the model `root` that has the configuration `config`, or
// one of the class facts->config_class where the part was given a copy. `part_model`: the innermost model. Needs the GIL, and
// facts->selection.
void ReadRequest(python::Object* root, python::Object* root_config, python::Object* part_model, python::Object* config,
                 ModuleFacts* facts) noexcept;

}  // namespace attntrace
