import { onnxFile, openRuntime, print } from "@halfstep/trainer/cli";
import { writeWholeFile } from "@halfstep/trainer/node";
import type { ExportCommand } from "./options.js";
import { openModel } from "./saved-model.js";

/**
 * Writes an ONNX file that takes `images` [batch, channels, height, width] of bytes as numbers, of any size, and gives `enlarged`, from
 * about 0 to 255.
 */
export async function exportNetwork(options: ExportCommand): Promise<number> {
  const { file } = options;
  const { runtime, close } = await openRuntime({ device: "cpu" });
  const model = await openModel(runtime, options);
  const bytes = await onnxFile(model, [runtime.zeros([1, 16, 16, model.channels])], options, {
    inputNames: ["images"],
    outputNames: ["enlarged"],
    channelsFirst: ["images", "enlarged"],
    axes: { images: { 0: "batch", 1: "height", 2: "width" } },
  });
  close();
  await writeWholeFile(file, bytes);
  print(`the network as ${file}`);
  return 0;
}
