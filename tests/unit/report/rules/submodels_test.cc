// Parts of one model that select different implementations: one finding with a table, and none beside it for the same calls.
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

constexpr char kEager[] =
    "operator: 'hand-written' backend: 'eager' path: 'dense' count: 2 score_bytes: 262144 peak_bytes: 300000 call_path: 3 "
    "mask_kind: 'float' ";
constexpr char kSdpa[] =
    "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 2 causal: true call_path: 2 ";
constexpr char kByName[] = "requested: 'sdpa' requested_by: 'name'";

std::string Part(const std::string& name, const std::string& selection, const std::string& more = "",
                 const std::string& model_selection = "sdpa") {
  const std::string config = name == "text" ? "LlamaConfig" : "CLIPVisionConfig";
  return "module { class_name: 'X' class_module: 'transformers.models.x' model_class: 'LlavaModel' model_selection: '" +
         model_selection + "' part: 'model." + name + "' part_config: '" + name + "_config' config_class: '" + config +
         "' selection_state: 'set' selection: '" + selection + "' " + more + " } ";
}

std::string Row(const Submodel& row) {
  return row.name() + " " + row.config_class() + ": " + row.requested() + ", " + row.selected() + ", " + row.ran() +
         (row.differs() ? " !" : "");
}

TEST_CASE("a tower that was left at eager: one finding, which keeps its bytes", "[submodel-backend-differs][fires]") {
  Program program;
  program.Add(kSdpa + Part("text", "sdpa", kByName));
  const Variant tower = program.Add(kEager + Part("vision", "eager", kByName));
  program.AddBackward(tower, 2, 500000);
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  const Finding& finding = findings[0];
  CHECK(finding.rule() == "submodel-backend-differs");
  CHECK(finding.variants_size() == 2);
  CHECK(finding.variants(0) == tower.id());
  CHECK(finding.forward_calls() == 2);
  CHECK(EvidenceOf(finding, "score bytes") == 262144);
  CHECK(finding.forward_peak_bytes() == 300000);
  CHECK(finding.backward_peak_bytes() == 500000);
  REQUIRE(finding.submodels_size() == 2);
  CHECK(Row(finding.submodels(0)) == "model.vision CLIPVisionConfig: sdpa, eager, eager !");
  CHECK(Row(finding.submodels(1)) == "model.text LlamaConfig: sdpa, sdpa, sdpa (flash)");
  CHECK_THAT(finding.why(), Contains("LlavaModel selects \"sdpa\", and model.vision (CLIPVisionConfig) has \"eager\""));
  CHECK(Codes(finding) ==
        "model.set_attn_implementation(\"sdpa\")\n"
        "attn_implementation={\"text_config\": \"sdpa\", \"vision_config\": \"eager\"}\n");
  CHECK(finding.advice(0).change() == "sdpa");
}

TEST_CASE("a Transformers that has no set_attn_implementation yet", "[submodel-backend-differs][fires]") {
  Program program;
  program.Merge("environment { transformers: '4.48.3' }");
  program.Add(kSdpa + Part("text", "sdpa", kByName));
  program.Add(kEager + Part("vision", "eager", kByName));
  CHECK_THAT(Codes(program.Findings("submodel-backend-differs").at(0)), !Contains("set_attn_implementation"));
}

TEST_CASE("the layer that diverged first is shown", "[submodel-backend-differs][fires]") {
  Program program;
  program.Add(kEager + Part("audio", "eager", kByName) + "first_ns: 900 ");
  const Variant earlier = program.Add(kEager + Part("vision", "eager", kByName) + "first_ns: 500 ");
  program.Add(kSdpa + Part("text", "sdpa", kByName) + "first_ns: 100 ");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].variants_size() == 2);
  CHECK(findings[0].variants(0) == earlier.id());
  CHECK(findings[0].submodels_size() == 3);
}

TEST_CASE("a part whose class has no sdpa", "[submodel-backend-differs][fires]") {
  Program program;
  program.Add(kSdpa + Part("text", "sdpa"));
  program.Add(kEager + Part("vision", "eager", "no_sdpa_class: 'OldTower' requested: 'eager' requested_by: 'config'"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "submodel-backend-differs");
  CHECK_THAT(findings[0].why(), Contains("of OldTower Transformers says that it supports no sdpa"));
  CHECK_THAT(Codes(findings[0]), !Contains("set_attn_implementation"));
}

TEST_CASE("the model selects eager and one part more than that: eager is what differs", "[submodel-backend-differs][fires]") {
  Program program;
  program.Add(kSdpa + Part("text", "sdpa", "", "eager"));
  const Variant tower = program.Add(kEager + Part("vision", "eager", "", "eager"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].variants(0) == tower.id());
  CHECK_THAT(findings[0].why(), Contains("Parts of LlavaModel select \"sdpa\""));
}

TEST_CASE("a part left at eager whose maps were asked for has two causes",
          "[submodel-backend-differs][eager-attention][fires]") {
  Program program;
  program.Add(kSdpa + Part("text", "sdpa", kByName));
  program.Add(kEager + Part("vision", "eager", std::string(kByName) + " output_attentions: 'argument'"));
  CHECK(program.Findings("submodel-backend-differs").size() == 1);
  CHECK(program.Findings("eager-attention").size() == 1);
}

TEST_CASE("parts as asked for, or the same", "[submodel-backend-differs][silent]") {
  Program program;
  SECTION("by a dictionary: eager's scores are told all the same") {
    program.Add(kSdpa + Part("text", "sdpa", "requested: 'sdpa' requested_by: 'dict'"));
    program.Add(kEager + Part("vision", "eager", "requested: 'eager' requested_by: 'dict'"));
    CHECK(program.Findings("eager-attention").size() == 1);
  }
  SECTION("by a dictionary that names one of them") {
    program.Add(kSdpa + Part("text", "sdpa"));
    program.Add(kEager + Part("vision", "eager", "requested: 'eager' requested_by: 'dict'"));
    CHECK(program.Findings("eager-attention").size() == 1);
  }
  SECTION("by a call to set_attn_implementation, after the model was made") {
    program.Add(kSdpa + Part("text", "sdpa", kByName));
    program.Add(kEager + Part("vision", "eager", "requested_by: 'call'"));
    const std::vector<Finding> findings = program.Findings("eager-attention");
    REQUIRE(findings.size() == 1);
    CHECK_THAT(findings[0].why(), Contains("set after the model was made, by set_attn_implementation"));
  }
  SECTION("set on the parts' configurations before the model was made") {
    program.Add(kSdpa + Part("text", "sdpa", "requested: 'sdpa' requested_by: 'config'"));
    program.Add(kEager + Part("vision", "eager", "requested: 'eager' requested_by: 'config'"));
    CHECK(program.Findings("eager-attention").size() == 1);
  }
  SECTION("the same") {
    program.Add(kSdpa + Part("text", "sdpa"));
    program.Add(kSdpa + Part("vision", "sdpa"));
  }
  SECTION("one layer that has a configuration of its own for its maps") {
    program.Add(kSdpa + Part("text", "sdpa"));
    program.Add(kEager + Part("text", "eager"));
  }
  SECTION("two models of one class, compared") {
    program.Add(kSdpa + Part("text", "sdpa"));
    program.Add(kSdpa + Part("vision", "sdpa"));
    for (const char* const name : {"text", "vision"}) program.Add(kEager + Part(name, "eager", "", "eager"));
  }
  CHECK(program.Findings("submodel-backend-differs").empty());
}

}  // namespace
}  // namespace attntrace::testing
