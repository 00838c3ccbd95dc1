import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigFields } from "@halfstep/models";
import {
  describeStateDictKeys,
  Lora,
  type Module,
  type StateDict,
  StateDictError,
} from "@halfstep/nn";
import { writeSafetensorsTo } from "@halfstep/safetensors";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import { boundedText } from "../files/bounded-text.js";
import { type NewFolder, writeWholeFolder } from "../files/whole-folder.js";
import { readWeights } from "../weights/read-weights.js";
import { safetensorsOf } from "../weights/state-dict.js";

/** Low-rank adapters as PEFT saves them: a folder with `adapter_config.json` and `adapter_model.safetensors` (or `.bin`). */
export interface PeftAdapter {
  readonly directory: string;
  readonly rank: number;
  readonly alpha: number;
  /** Names in torch of the layers that have adapters. */
  readonly targets: readonly string[];
  /** Names in torch of modules that were trained whole. */
  readonly trained: readonly string[];
  /** PEFT's name of the task: "SEQ_CLS", "TOKEN_CLS", "CAUSAL_LM", … */
  readonly taskType: string | undefined;
  readonly state: StateDict;
}

/** The most bytes of an `adapter_config.json`. */
const mostBytes = 2 ** 20;

/**
 * Reads a folder of PEFT's. Which layers have adapters is what its weights name; `target_modules` may be a pattern.
 * @throws CheckpointError, ConfigError for what is no LoRA in its plain form, SafetensorsError, TorchFileError
 *
 * @example
 * addAdapter(model, await readPeftAdapter("bert-lora")).merge();
 */
export async function readPeftAdapter(directory: string): Promise<PeftAdapter> {
  const source = join(directory, configName);
  const fields = new ConfigFields(await jsonOf(source), source);
  fields.require({
    ...{ peft_type: "LORA", bias: "none", use_dora: false, lora_bias: false },
    ...{ rank_pattern: "empty", alpha_pattern: "empty" },
  });
  const rank = fields.count("r");
  const alpha = fields.positive("lora_alpha", rank);
  const safetensors = join(directory, weightsName);
  const older = join(directory, "adapter_model.bin");
  const isOlder = !existsSync(safetensors) && existsSync(older);
  const state = await readWeights(isOlder ? older : safetensors);
  const names = Lora.namesIn(state);
  const other = Object.entries(state).find(
    ([name, { shape }]) => /\.lora_A\./.test(name) && shape[0] !== rank,
  );
  if (other) fields.refuse(`has r ${rank}, and ${other[0]} has rank ${other[1].shape[0]}`);
  if (names.targets.length === 0) fields.refuse("has weights without lora_A and lora_B beside it");
  return {
    ...{ directory, rank, state, ...names },
    alpha: fields.truth("use_rslora", false) ? alpha * Math.sqrt(rank) : alpha,
    taskType: fields.has("task_type") ? fields.text("task_type") : undefined,
  };
}

/**
 * Adds adapters to the model that they were trained on.
 * @throws CheckpointError where they belong to another model
 */
export function addAdapter(model: Module, adapter: PeftAdapter): Lora {
  const { rank, alpha, targets, trained, state } = adapter;
  try {
    const lora = new Lora(model, { rank, alpha, targets, trained, seed: 0 });
    lora.loadTorchStateDict(state);
    return lora;
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof StateDictError)) throw error;
    const fact =
      error instanceof StateDictError ? describeStateDictKeys(error) : (error as Error).message;
    throw new CheckpointError(
      "misfit",
      adapter.directory,
      `has adapters of another model: ${fact}`,
      error,
    );
  }
}

/** What PEFT wants to know of adapters besides their weights. */
export interface PeftDescription {
  readonly taskType: string;
  /** The folder or name of the model that they were trained on. */
  readonly base?: string | undefined;
  /** Writes further files into the folder. */
  readonly fill?: ((folder: NewFolder) => Promise<void>) | undefined;
}

/**
 * Writes adapters as a folder of PEFT's: `PeftModel.from_pretrained(model, directory)`. The folder appears whole or not at all.
 * @throws StorageError
 */
export async function writePeftAdapter(
  directory: string,
  lora: Lora,
  { taskType, base, fill }: PeftDescription,
): Promise<void> {
  const tensors = safetensorsOf(await lora.torchStateDict());
  const config = {
    peft_type: "LORA",
    task_type: taskType,
    base_model_name_or_path: base ?? null,
    r: lora.rank,
    lora_alpha: lora.alpha,
    target_modules: lora.targets,
    modules_to_save: lora.trained.length > 0 ? lora.trained : null,
    lora_dropout: 0,
    bias: "none",
    // Layers of GPT-2 are the other way round in torch.
    fan_in_fan_out: lora.targets.includes("c_attn"),
    inference_mode: true,
  };
  await writeWholeFolder(directory, async (folder) => {
    await folder.write(configName, `${JSON.stringify(config, undefined, 2)}\n`);
    await folder.write(weightsName, (sink) =>
      writeSafetensorsTo(sink, tensors, { metadata: { format: "pt" } }),
    );
    await fill?.(folder);
  });
}

const configName = "adapter_config.json";
const weightsName = "adapter_model.safetensors";

async function jsonOf(path: string): Promise<unknown> {
  const text = await boundedText(path, mostBytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CheckpointError("malformed", path, "is no JSON: restore it", error);
  }
}
