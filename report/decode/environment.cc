#include <map>
#include <string>

#include "absl/strings/strip.h"
#include "report/decode/stages.h"

namespace attntrace {

std::map<std::string, std::string> ReadEnvironment(const Definitions& definitions) {
  std::map<std::string, std::string> facts;
  for (const spool::EnvironmentDef* def : definitions.environment()) {
    std::string key = definitions.String(def->key);
    if (!key.empty()) facts[std::move(key)] = definitions.String(def->value);
  }
  return facts;
}

// The keys are listed beside spool::EnvironmentDef.
void FillEnvironment(const std::map<std::string, std::string>& facts, Environment* environment) {
  for (const auto& [key, value] : facts) {
    absl::string_view rest = key;
    if (key == "torch") {
      environment->set_torch(value);
    } else if (key == "python") {
      environment->set_python(value);
    } else if (key == "transformers") {
      environment->set_transformers(value);
    } else if (key == "cuda") {
      environment->set_cuda(value);
    } else if (absl::ConsumePrefix(&rest, "device.")) {
      environment->add_devices(value);
    } else if (absl::ConsumePrefix(&rest, "package.")) {
      Package* package = environment->add_packages();
      package->set_name(std::string(rest));
      package->set_version(value);
    } else if (absl::ConsumePrefix(&rest, "attention.")) {
      RegisteredAttention* registered = environment->add_registered_attention();
      registered->set_name(std::string(rest));
      registered->set_function(value);
    } else {
      (*environment->mutable_settings())[key] = value;
    }
  }
}

}  // namespace attntrace
