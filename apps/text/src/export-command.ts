import { onnxFile, openRuntime, print, UsageError } from "@halfstep/trainer/cli";
import { writeWholeFile } from "@halfstep/trainer/node";
import type { ExportCommand } from "./commands.js";
import { openTrained, useModel } from "./use-model.js";

const inputNames = ["input_ids", "attention_mask", "token_type_ids"];
const axes = Object.fromEntries(inputNames.map((name) => [name, { 0: "batch", 1: "length" }]));

/**
 * Writes an ONNX file that takes tokens, their mask and segments, of any batch and length, and gives `logits`: scores of the labels, or of
 * the vocabulary.
 */
export async function exportCommand({
  file,
  model,
  onnx,
  ...options
}: ExportCommand): Promise<number> {
  const saved = await openTrained(model, options);
  if (saved.features)
    throw new UsageError(
      `${model} looks at how words are spelt, which ONNX files of this program do not: train it with --no-word-features`,
    );
  const { runtime, close } = await openRuntime({ device: "cpu" });
  const prepared = useModel(runtime, saved, false);
  const tokens = runtime.tensor(new Uint32Array(8).fill(1), [2, 4]);
  const example = [tokens, { attentionMask: tokens, tokenTypeIds: tokens }];
  const flag = onnx ? { onnx } : {};
  const names = { inputNames, outputNames: ["logits"], axes };
  const bytes = await onnxFile(prepared.model, example, flag, names);
  close();
  await writeWholeFile(file, bytes);
  print(`${model} as ${file}`);
  return 0;
}
