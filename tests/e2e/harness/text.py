"""A report as compact text that is the same on every machine: no absolute path, pid, time, address or peak."""
import os
import re

_SHORT = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16"}


def _file(path):
    """Of a library: from its top package on. Of the user: the file's name."""
    library = re.search(r"(?:site|dist)-packages/(.*)", path)
    return library.group(1) if library else os.path.basename(path)


def _frame(report, index, with_line):
    frame = report["frames"][index]
    place = _file(frame["file"]) + (f":{frame['line']}" if with_line else "")
    return f"{place} {frame['function']}"


def _where(report, variant, exact=()):
    if not variant["call_path"]:
        return f"no call path: {variant['no_call_path']}"
    path = report["call_paths"][variant["call_path"] - 1]
    steps = []
    if path["user"] >= 0:
        steps.append(_frame(report, path["frames"][path["user"]], True))
    if path["call_site"] >= 0 and path["call_site"] != path["user"]:
        owner = report["frames"][path["frames"][path["call_site"]]]["owner"]
        steps.append(f"{owner}: {_frame(report, path['frames'][path['call_site']], owner == 'user' or owner in exact)}")
    if path["compiled"]:
        steps.append("compiled")
    module = variant.get("module") or {}
    if module.get("class_name"):
        layers = variant["layers"]
        text = module["class_name"] + (f" layers {','.join(map(str, layers))}" if layers else "")
        if module.get("selection_state") == "set":
            text += f" selected={module['selection']}"
        elif module.get("selection_state") == "unset":
            text += " selected nothing"
        if module.get("output_attentions"):
            text += f" output_attentions={module['output_attentions']}"
        steps.append(text)
    return " > ".join(steps)


def _shapes(variant):
    if variant["shapes_folded"]:
        return "shapes folded"
    texts = []
    for tensor in variant["tensors"]:
        layout = "" if tensor["layout"] in ("", "strided") else f" {tensor['layout']}"
        sizes = ",".join(tensor["sizes"])
        texts.append(f"{tensor['role']}({sizes}){_SHORT.get(tensor['dtype'], tensor['dtype'])}{layout}")
    return " ".join(texts)


def _flags(variant):
    texts = [key for key in ("causal", "causal_asked", "score_mod", "gqa", "direct") if variant[key]]
    if float(variant["dropout_p"]):
        texts.append(f"dropout={float(variant['dropout_p']):g}")
    if variant["mask_kind"] != "none":
        texts.append(f"mask={variant['mask_kind']},{variant['mask_content']}")
    if "flex.mask_density" in variant["facts"]:
        texts.append(f"blocks={variant['facts']['flex.mask_density']}%")
    if not variant["grad_mode"] and variant["phase"] == "forward":
        texts.append("no-grad")
    if variant["path"] != "fused" and int(variant["score_bytes"]):
        texts.append(f"scores={variant['score_bytes']}")
    return " ".join(texts)


def _variant(report, variant):
    lines = [f"{variant['phase']} {variant['operator']} -> {variant['backend']} ({variant['path']}) x{variant['count']}"]
    lines.append("  " + " ".join(filter(None, (_shapes(variant), _flags(variant)))))
    lines += [f"  not {gate['backend']}: {gate['text']}" for gate in sorted(variant["gates"], key=lambda gate: gate["backend"])]
    return lines


def _incident(report, incident, exact):
    """Of an exception: its class and the start of its text, which does not change between machines."""
    said = f"{incident['type']}: {incident['message'].splitlines()[0][:80]}" if incident["message"] else incident["type"]
    texts = [f"incident {incident['kind']}", f"x{incident['count']}", incident["operator"], said, _shapes({"shapes_folded": False, **incident})]
    texts += [f"grid={incident['bytes']}"] if int(incident["bytes"]) else []
    texts += [f"leads to {incident['leads_to']}"] if incident["leads_to"] else []
    texts += [f"pinned at {_file(incident['pinned_at'])}"] if incident["pinned_at"] else []
    return " ".join(filter(None, texts)) + f"\n  {_where(report, {'module': None, 'no_call_path': '', **incident}, exact)}"


def _line_key(where):
    """Orders call sites by the user's line number, not by its digits."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", where)]


def render(report, returncode, exact=()):
    """`exact`: owners whose frames are shown with their line."""
    totals = report["totals"]
    lines = [f"exit {returncode}",
             f"calls {totals['forward_calls']}/{totals['backward_calls']}/{totals['recompute_calls']}"
             f" fused={totals['fused']} dense={totals['dense']} quadratic={totals['quadratic']} unknown={totals['unknown']}"]
    by_id = {variant["id"]: variant for variant in report["variants"]}
    for finding in report["findings"]:
        title = re.sub(r"[\d.]+ (?:[KMGT]i)?B\b", "N bytes", finding["title"])
        lines.append(f"{finding['severity']} {finding['rule']} {finding['phase']}: {title}")
        calls = "/".join(finding[f"{phase}_calls"] for phase in ("forward", "backward", "recompute"))
        first = by_id.get(finding["variants"][0]) if finding["variants"] else None
        if not first and finding["incidents"]:
            first = {"module": None, "no_call_path": "", **report["incidents"][finding["incidents"][0] - 1]}
        lines.append(f"  calls {calls}" + (f", {_where(report, first, exact)}" if first else ""))
        lines += [f"  built {evidence['text']}" for evidence in finding["evidence"] if evidence["name"] == "built"]
        lines += [f"  part {part['name'] or '-'} {part['config_class']} {part['config_key'] or '-'}: requested={part['requested'] or '-'}"
                  f" config={part['selected']} ran={part['ran']} x{part['calls']}" + (" differs" if part["differs"] else "")
                  for part in finding["submodels"]]
        lines += [f"  do: {advice['text']}" + (f" [{advice['code']}]" if advice["code"] else "") for advice in finding["advice"]]
    lines += [_incident(report, incident, exact) for incident in report["incidents"]]
    for blind in sorted(report["blind_spots"], key=lambda spot: spot["code"]):
        lines.append(f"blind {blind['code']} x{blind['count']}")
    groups = {}
    for variant in report["variants"]:
        groups.setdefault(_where(report, variant, exact), []).append("\n".join("  " + line for line in _variant(report, variant)))
    for where in sorted(groups, key=_line_key):
        lines += ["", where, *sorted(groups[where], key=_phase_key)]
    return "\n".join(lines) + "\n"


def _phase_key(text):
    return ([text.split()[0] != "forward", text.split()[0] != "recompute"], _line_key(text))
