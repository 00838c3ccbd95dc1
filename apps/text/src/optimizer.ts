import type { BertModel } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { BertAdam, type ParameterStorage } from "@halfstep/optim";
import {
  type FlatVariables,
  flattenByDType,
  type Runtime,
  type Storage,
  type Variable,
} from "@halfstep/tensor";
import type { JobExchange } from "@halfstep/trainer";

export interface BertOptimizerOptions {
  readonly lr: number;
  /** Part of the steps in which the rate rises from 0. */
  readonly warmup: number;
  readonly steps: number;
  /** The rate of each layer is that of the layer above it times this. 1: all learn alike. */
  readonly layerDecay: number;
  /** What is trained. Default: the whole model. */
  readonly trained?: NamedParameters | undefined;
  readonly storage: ParameterStorage;
  /** The part of each group that this process steps, in a job. Default: the whole groups. */
  readonly shard?: JobExchange["shard"] | undefined;
}

/** The optimizer of run_classifier: BertAdam with a linear warm-up, and no decay of biases and norms. */
export function bertOptimizer(
  runtime: Runtime,
  model: Module & { readonly bert: BertModel },
  { lr, warmup, steps, layerDecay, trained, storage, shard }: BertOptimizerOptions,
): { readonly optimizer: BertAdam<Storage>; readonly groups: readonly FlatVariables[] } {
  const groups = parameterGroups(model, layerDecay, trained).flatMap(
    ({ parameters, decays, rate }) =>
      flattenByDType(parameters).map((params) => ({
        params,
        lr: lr * rate,
        weightDecay: decays ? 0.01 : 0,
      })),
  );
  const optimizer = new BertAdam(runtime.target, shard ? shard(groups) : groups, {
    lr,
    warmup,
    tTotal: steps,
    schedule: "warmup_linear",
    storage,
  });
  return { optimizer, groups: groups.map(({ params }) => params) };
}

/** A model, or the adapters of one. */
export interface NamedParameters {
  namedParameters(): Iterable<readonly [path: string, parameter: Variable]>;
}

interface ParameterGroup {
  readonly parameters: readonly Variable[];
  readonly decays: boolean;
  /** Factor of the learning rate. */
  readonly rate: number;
}

/** Groups of parameters with equal options: by depth where rates depend on it, with and without decay. */
export function parameterGroups(
  model: Module & { readonly bert: BertModel },
  layerDecay: number,
  trained: NamedParameters = model,
): readonly ParameterGroup[] {
  const layers = model.bert.config.numHiddenLayers;
  const groups = new Map<string, { parameters: Variable[]; decays: boolean; rate: number }>();
  for (const [name, parameter] of trained.namedParameters()) {
    const decays = !/(^|\.)bias$|layerNorm\./.test(name);
    const rate = layerDecay ** (layers + 1 - depthOf(name, layers));
    const key = `${decays} ${rate}`;
    const group = groups.get(key) ?? { parameters: [], decays, rate };
    groups.set(key, group);
    group.parameters.push(parameter);
  }
  return [...groups.values()];
}

/** 0 for embeddings, then the number of the layer; the head above all layers has the highest rate. */
function depthOf(name: string, layers: number): number {
  if (/^(bert\.embeddings|features)\./.test(name)) return 0;
  const [, layer] = /^bert\.encoder\.layer\.(\d+)\./.exec(name) ?? [];
  return layer === undefined ? layers + 1 : Number(layer) + 1;
}
