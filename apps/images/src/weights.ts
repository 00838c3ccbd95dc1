import type { Recipe } from "@halfstep/autocast";
import { DataError } from "@halfstep/data";
import type { ResNet } from "@halfstep/models";
import {
  describeStateDictKeys,
  loadTorchStateDict,
  StateDictError,
  torchStateDict,
} from "@halfstep/nn";
import { writeSafetensorsTo } from "@halfstep/safetensors";
import { auditRange, safetensorsOf } from "@halfstep/trainer";
import { type OnnxFlag, onnxFile } from "@halfstep/trainer/cli";
import { readWeights, writeWholeFile } from "@halfstep/trainer/node";
import type { OpenedNetwork } from "./saved-network.js";

/** The classification layer, which is useless for other classes. */
const head = /^(fc|linear)\./;

/**
 * Starts a network from weights with torchvision's names and layouts. The last layer keeps its initial values where the
 * file's has other classes. Weights beyond the range of 16 bits are reported, with advice.
 * @throws DataError where another parameter is missing or has another shape
 */
export async function loadPretrained(
  model: ResNet,
  { pretrained: path, key }: { readonly pretrained: string; readonly key?: string | undefined },
  { params, compute }: Recipe,
  say: (line: string) => void,
): Promise<void> {
  const weights = await readWeights(path, { key });
  const half = [params, compute].find((dtype) => dtype !== "float32");
  if (half === "float16" || half === "bfloat16")
    for (const line of auditRange(weights, half).advice) say(line);
  const body = Object.fromEntries(Object.entries(weights).filter(([name]) => !head.test(name)));
  const classes = (weights["fc.weight"] ?? weights["linear.weight"])?.shape[0];
  const isSame = classes === model.fc.weight.shape[0];
  try {
    const { missing, unexpected, misshapen } = loadTorchStateDict(model, isSame ? weights : body, {
      strict: isSame,
    });
    const ofBody = (names: readonly string[]): readonly string[] =>
      names.filter((name) => !head.test(name));
    const problems = describeStateDictKeys({
      ...{ missing: ofBody(missing), unexpected: ofBody(unexpected), misshapen: ofBody(misshapen) },
    });
    if (problems !== "") throw new DataError(path, `is of another network: ${problems}`);
  } catch (error) {
    if (error instanceof StateDictError) throw new DataError(path, error.message);
    throw error;
  }
  say(
    isSame
      ? `weights of ${path}`
      : `weights of ${path}, but for the last layer, which has ${classes ?? "no"} classes there`,
  );
}

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
