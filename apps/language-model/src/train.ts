import type { Wire } from "@halfstep/distributed";
import { GradScaler } from "@halfstep/grad-scaler";
import { GPT, type GPTOptions } from "@halfstep/models";
import { applyRecipe, evaluationMode } from "@halfstep/nn";
import { AdamW, clipGradNorm, cosine, ExponentialMovingAverage } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  type FlatVariables,
  flattenByDType,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import {
  type AdapterSettings,
  adaptersFor,
  type ExchangeMode,
  evaluateEvery,
  jobExchange,
  type RunContext,
  type RunSummary,
  recipeFor,
  runSummary,
  savedGenerator,
  scalerOptionsFor,
  storageFor,
  type TestResult,
  type TrainingPrecision,
  train,
  withParts,
} from "@halfstep/trainer";
import { logitsOf, scoreText, type TextScore } from "./evaluate.js";
import { type HubFolder, loadHubWeights } from "./hub.js";
import { type LanguageNet, LstmModel } from "./lstm-model.js";
import { sampleText } from "./sample.js";
import { savedLanguageModel } from "./saved-model.js";
import type { Tokenizer } from "./tokenizers/tokenizer.js";
import { batchesPerEpoch, type TrainingBatch, trainingWindows } from "./windows.js";

/** One training run. */
export interface LanguageRun extends RunContext, Partial<AdapterSettings> {
  readonly precision: TrainingPrecision;
  readonly tokenizer: Tokenizer;
  /** The text to learn. */
  readonly tokens: Uint32Array;
  /** The text for evaluation, during training and after it. */
  readonly heldOut: string;
  /** Default "gpt". */
  readonly arch?: "gpt" | "lstm" | undefined;
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  /** Length of the model's context in tokens. */
  readonly context: number;
  readonly dropout: number;
  readonly bias: boolean;
  /** Sequences in a batch of each process. */
  readonly batchSize: number;
  readonly accumulate: number;
  /** How the processes of a job work together, and the steps between two exchanges by DiLoCo. Default: gradients of every step. */
  readonly exchange?: ExchangeMode | undefined;
  readonly wire?: Wire | undefined;
  readonly innerSteps?: number | undefined;
  /** Columns of the factors in place of the gradients of matrices. Default: whole gradients. */
  readonly powerSgd?: number | undefined;
  readonly maxSteps: number;
  readonly lr: number;
  readonly minLr: number;
  /** Steps in which the learning rate rises. */
  readonly warmUp: number;
  readonly weightDecay: number;
  readonly beta2: number;
  /** The largest norm of all gradients. */
  readonly clip: number;
  /** Decay of an average of the parameters, which is then evaluated and used. Undefined: none. */
  readonly ema?: number | undefined;
  readonly evalEvery: number;
  readonly patience?: number | undefined;
  readonly seed: number;
  /** Called with texts of the model before and after training. */
  readonly onSample?: ((title: string, text: string) => void) | undefined;
  readonly initScale?: number | undefined;
  readonly staticLossScale?: number | undefined;
  /**
   * Factor of the loss, for studies of underflow. It also multiplies Adam's eps and the largest norm, so that exact
   * arithmetic would give equal results. Default 1.
   */
  readonly lossWeight?: number | undefined;
  /** The model to start from, in place of a new one of the sizes above. */
  readonly init?: HubFolder | undefined;
  /** False for float16 without loss scaling, which studies show to fail. Default: as the precision has it. */
  readonly scaling?: boolean | undefined;
}

/** The result of a run. `test` is about the held-out text. */
export interface LanguageSummary extends RunSummary {
  readonly test: TestResult & Pick<TextScore, "bitsPerCharacter">;
}

/** Trains a model, and evaluates it on the held-out text. Undefined if the signal stopped it. */
export async function trainLanguageModel(run: LanguageRun): Promise<LanguageSummary | undefined> {
  const { runtime, device, tokenizer, lossWeight = 1 } = run;
  const startedAt = performance.now();
  device?.memory.resetPeak();
  const recipe = recipeFor(run.precision);
  const model = newModel(run);
  applyRecipe(model, recipe);
  const lora = adaptersFor(model, { loraTargets: ["c_attn"], ...run }, { ...run, recipe });
  const groups = parameterGroups(lora ?? model, run.weightDecay);
  const schedule = cosine({
    lr: run.lr,
    minLr: run.minLr,
    warmupSteps: Math.min(run.warmUp, run.maxSteps - 1),
    totalSteps: run.maxSteps,
  });
  const exchange = await jobExchange(run.job, {
    ...{ mode: run.exchange, wire: run.wire, powerSgd: run.powerSgd },
    ...{ innerSteps: run.innerSteps, lastStep: run.maxSteps },
    ...{
      runtime,
      signal: run.signal,
      parameters: (lora ?? model).parameters(),
      generator: model.generator,
    },
  });
  const optimizer = new AdamW(runtime.target, exchange.shard(groups), {
    lr: schedule,
    betas: [0.9, run.beta2],
    eps: 1e-8 * lossWeight,
    storage: storageFor(recipe),
  });
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...(run.scaling === false ? { enabled: false } : scalerOptionsFor(recipe, run)),
    // The loop drains outcomes itself, with the losses.
    outcomeSchedule: false,
  });
  const ema =
    run.ema === undefined
      ? undefined
      : new ExponentialMovingAverage(optimizer, { decay: run.ema, warmUp: true });

  const windows = { ...run, batchSize: globalBatchSize(run) };
  batchesPerEpoch(windows);
  const score = async (): Promise<TextScore> => {
    await exchange.complete();
    return scoreText({ ...run, model, text: run.heldOut, batchSize: 2 * run.batchSize });
  };
  const judge = (): Promise<TextScore> => (ema ? ema.during(score) : score());
  const sample = async (title: string): Promise<void> => {
    const text = await writtenBy(run, model, recipe.name);
    run.onSample?.(title, text);
  };
  if (run.onSample) await sample("before training");
  const loss = (batch: TrainingBatch): Tensor => {
    exchange.begin(batch.share);
    const mean = crossEntropy(logitsOf(runtime, model, batch), runtime.tensor(batch.targets));
    return lossWeight === 1 ? mean : mean.mul(lossWeight);
  };

  const result = await train<TrainingBatch>({
    runtime,
    device,
    precision: recipe,
    optimizer,
    scaler,
    epochs: Number.POSITIVE_INFINITY,
    maxSteps: run.maxSteps,
    accumulate: run.accumulate,
    samples: ({ share }) => share.weight,
    batches: (epoch) => trainingWindows(windows, epoch),
    batchesFrom: (epoch, first) => trainingWindows(windows, epoch, first),
    loss,
    reduce: (batches) =>
      exchange.reduce?.(optimizer, {
        weight: batches.reduce((sequences, { share }) => sequences + share.weight, 0),
        scaler,
      }),
    clip: () => clipGradNorm(optimizer, run.clip * lossWeight),
    lr: schedule,
    signal: exchange.signal,
    hooks: {
      ...(ema && { average: { record: () => ema.update() } }),
      ...exchange.hooks,
      ...run.hooks,
      evaluation: evaluateEvery({
        every: { steps: run.evalEvery },
        model,
        evaluate: judge,
        ...(run.patience !== undefined && { patience: run.patience }),
        values: metricsOf,
      }),
    },
    checkpoints: withParts(run.checkpoints, {
      model,
      optimizer,
      language: savedLanguageModel(model, tokenizer, recipe.name, {
        lora,
        base: run.init?.directory,
      }),
      ...(lora && { lora }),
      dropout: savedGenerator(model.generator),
      ...(ema && { ema }),
    }),
  });
  if (result.isAborted || run.signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  model.eval();
  const test = metricsOf(await judge());
  if (run.onSample)
    await (ema ? ema.during(() => sample("after training")) : sample("after training"));
  return {
    ...(await runSummary({
      ...{ precision: recipe, result, test, model: lora ?? model, peakBytes, startedAt },
      groups: groups.map(({ params }) => params),
      // AdamW's.
      moments: 2,
      samplesPerStep: samplesPerStep(run),
    })),
    test,
  };
}

/** The model's continuation of the beginning of the held-out text; the same for the same model. */
async function writtenBy(
  { runtime, tokenizer, heldOut, seed }: LanguageRun,
  model: LanguageNet,
  precision: string,
): Promise<string> {
  const goOn = evaluationMode(model);
  const prompt = [...heldOut].slice(0, 24).join("");
  const options = { prompt, length: 100, temperature: 0.8, seed };
  try {
    return tokenizer.decode(await sampleText(runtime, { model, tokenizer, precision }, options));
  } finally {
    goOn();
  }
}

const metricsOf = ({ bitsPerCharacter, accuracy, loss }: TextScore): LanguageSummary["test"] => ({
  bitsPerCharacter,
  accuracy,
  loss,
});

type Sizes = Pick<LanguageRun, "batchSize" | "accumulate" | "job">;

const globalBatchSize = ({ batchSize, job }: Pick<Sizes, "batchSize" | "job">): number =>
  batchSize * (job?.ranks ?? 1);

/** Sequences in a step of all processes together. */
export const samplesPerStep = (run: Sizes): number => globalBatchSize(run) * run.accumulate;

/** Epochs that a run takes, of which the last may end early. */
export function epochsOf(
  run: Sizes & Pick<LanguageRun, "tokens" | "context" | "maxSteps">,
): number {
  const batches = batchesPerEpoch({ ...run, batchSize: globalBatchSize(run) });
  // An epoch ends with a step, of fewer batches than others.
  return Math.ceil(run.maxSteps / Math.ceil(batches / run.accumulate));
}

/** The model of a run, with the weights that it starts from. */
function newModel(run: LanguageRun): LanguageNet {
  const { runtime, tokenizer, context, layers, width, dropout, seed, init } = run;
  if (run.arch === "lstm") {
    const sizes = { vocabSize: tokenizer.vocabSize, blockSize: context, layers, width };
    return new LstmModel(runtime, { arch: "lstm", ...sizes, dropout, seed });
  }
  const model = new GPT(runtime, gptOptions(run));
  if (init) loadHubWeights(model, init);
  return model;
}

const gptOptions = (run: LanguageRun): GPTOptions =>
  run.init ? { ...run.init.config, ...dropouts(run), seed: run.seed } : newOptions(run);

/** As flags say, because folders have those of their pre-training. */
const dropouts = ({ dropout }: LanguageRun) => ({
  ...{ dropout, embdDropout: dropout, attnDropout: dropout },
});

const newOptions = (run: LanguageRun): GPTOptions => ({
  seed: run.seed,
  vocabSize: run.tokenizer.vocabSize,
  blockSize: run.context,
  nLayer: run.layers,
  nHead: run.heads,
  nEmbd: run.width,
  dropout: run.dropout,
  bias: run.bias,
  // GPT-2's 0.02 is for 768 features. Attention of a narrow model that starts so small is flat, and stays so for long.
  initializerRange: 0.02 * Math.sqrt(768 / run.width),
});

interface ParameterGroup {
  readonly params: FlatVariables;
  readonly weightDecay: number;
}

/** As nanoGPT: matrices and embeddings decay, biases and norms do not. */
function parameterGroups(
  model: { parameters(): Iterable<Variable> },
  weightDecay: number,
): readonly ParameterGroup[] {
  const parameters = [...model.parameters()];
  const groups = (isWanted: (variable: Variable) => boolean, decay: number): ParameterGroup[] =>
    flattenByDType(parameters.filter(isWanted)).map((params) => ({ params, weightDecay: decay }));
  return [...groups(({ rank }) => rank >= 2, weightDecay), ...groups(({ rank }) => rank < 2, 0)];
}
