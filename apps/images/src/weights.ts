import { torchStateDict } from "@halfstep/nn";
import { writeSafetensorsTo } from "@halfstep/safetensors";
import { safetensorsOf } from "@halfstep/trainer";
import { type OnnxFlag, onnxFile } from "@halfstep/trainer/cli";
import { writeWholeFile } from "@halfstep/trainer/node";
import type { OpenedNetwork } from "./saved-network.js";

/**
 * Writes a network as a safetensors file with torchvision's names and layouts, for `load_state_dict` there. The format of its
 * images is in the file's metadata, `view`, as JSON.
 */
export async function exportWeights(
  { model, view }: Pick<OpenedNetwork, "model" | "view">,
  path: string,
): Promise<void> {
  const tensors = safetensorsOf(await torchStateDict(model));
  const metadata = { format: "pt", view: JSON.stringify(view) };
  await writeWholeFile(path, (sink) => writeSafetensorsTo(sink, tensors, { metadata }));
}

/** Writes a network as an ONNX file that takes `images` [batch, channels, height, width] of its size, and gives `logits`. */
export async function exportOnnx(
  { model, view: { size, channels } }: Pick<OpenedNetwork, "model" | "view">,
  path: string,
  flag: OnnxFlag,
): Promise<void> {
  const { runtime } = model.conv1.weight;
  const options = {
    inputNames: ["images"],
    outputNames: ["logits"],
    channelsFirst: ["images"],
  };
  const example = [runtime.zeros([1, size, size, channels])];
  await writeWholeFile(path, await onnxFile(model, example, flag, options));
}
