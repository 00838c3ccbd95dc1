import { type OnnxFlag, onnxFile, openRuntime, print } from "@halfstep/trainer/cli";
import { writeWholeFile } from "@halfstep/trainer/node";
import type { ExportCommand } from "../options.js";
import { openPretrained } from "../pretrained.js";
import { type OpenedSegmenter, openSegmenter } from "../saved-model.js";

export async function exportNetwork(options: ExportCommand): Promise<number> {
  const { file, model, pretrained: path } = options;
  const { runtime, close } = await openRuntime({ device: "cpu" });
  const opened =
    path === undefined
      ? await openSegmenter(runtime, model, "float32")
      : await openPretrained(runtime, { ...options, path });
  const bytes = await onnxOf(opened, options);
  close();
  await writeWholeFile(file, bytes);
  print(`${opened.path} as ${file}`);
  return 0;
}

/**
 * An ONNX file that takes `images` [batch, channels, height, width] as the network does, with sides that are multiples of 16, and gives
 * `logits` [batch, classes, height, width].
 */
export const onnxOf = (
  { model, channels }: Pick<OpenedSegmenter, "model" | "channels">,
  flag: OnnxFlag,
): Promise<Uint8Array<ArrayBuffer>> =>
  onnxFile(model, [model.outc.conv.weight.runtime.zeros([1, 32, 32, channels])], flag, {
    inputNames: ["images"],
    outputNames: ["logits"],
    channelsFirst: ["images", "logits"],
    axes: { images: { 0: "batch", 1: "height", 2: "width" } },
    // Pooling halves both four times.
    multiples: { height: 16, width: 16 },
  });
