import { type ApexLevel, apexRecipe, type Recipe } from "@halfstep/autocast";
import type { GradScalerOptions } from "@halfstep/grad-scaler";
import { recipeFor, scalerOptionsFor } from "@halfstep/trainer";
import { UsageError } from "@halfstep/trainer/cli";

/** The flags of apex's two ImageNet trainers that choose a precision: main_fp16_optimizer.py's, and main_amp.py's. */
export interface PrecisionFlags {
  /** main_fp16_optimizer.py: the model in float16, batch norm and masters in float32. */
  readonly fp16?: boolean | undefined;
  readonly staticLossScale?: number | undefined;
  readonly dynamicLossScale?: boolean | undefined;
  /** main_amp.py: `amp.initialize(model, optimizer, opt_level, keep_batchnorm_fp32, loss_scale)`. */
  readonly optLevel?: ApexLevel | undefined;
  readonly keepBatchnormFp32?: "True" | "False" | undefined;
  /** A number, or "dynamic". */
  readonly lossScale?: string | undefined;
  /** Any other recipe. */
  readonly precision?: string | undefined;
  /** Initial value of a dynamic loss scale. */
  readonly initScale?: number | undefined;
}

export interface ChosenPrecision {
  readonly recipe: Recipe;
  readonly scaler: GradScalerOptions;
  /** Warnings about flags without effect. */
  readonly warnings: readonly string[];
}

/**
 * The precision for the flags, by the rules of apex's scripts. A loss scale without a precision means `--fp16`. The flag `--dynamic-loss-scale` supersedes `--static-loss-scale`,
 * which is ignored with a warning where nothing is float16. The flag `--fp16` selects `FP16_Optimizer`: its scale is 1 by default,
 * and its dynamic scale starts at 2^32. A level has the loss scale of apex's table unless `--loss-scale` replaces it. The scripts
 * have no rule for both kinds of flags: here `--opt-level` supersedes `--fp16`, and the level takes the other script's loss scale.
 * The flag `--init-scale` is of a dynamic scale, and means one unless a scale, a level or another recipe is named.
 * @throws UsageError for flags that contradict each other, and for combinations that `amp.initialize` refuses
 */
export function choosePrecision(given: PrecisionFlags): ChosenPrecision {
  const flags = impliesDynamic(given) ? { ...given, dynamicLossScale: true } : given;
  const { optLevel, fp16 = impliesFp16(flags), precision } = flags;
  const other = optLevel !== undefined ? "--opt-level" : fp16 ? "--fp16" : undefined;
  if (precision !== undefined && other !== undefined)
    throw new UsageError(`--precision and ${other} both choose a precision: give one of them`);
  const warnings: string[] = [];
  if (optLevel !== undefined && fp16)
    warnings.push(`--opt-level ${optLevel} supersedes --fp16, which is O2 without loss scaling`);
  const halves = isHalf({ ...flags, fp16 });
  const scale = halves ? scaleOf(flags, warnings) : ignoredScales(flags, warnings);
  const keeps = flags.keepBatchnormFp32;
  if (keeps !== undefined && other === undefined)
    warnings.push("--keep-batchnorm-fp32 is ignored without --opt-level or --fp16");
  if (other === undefined) {
    const recipe = recipeFor(precision ?? "float32");
    return withScale(recipe, scale, flags, undefined, warnings);
  }
  const level = optLevel ?? "O2";
  const lossScale = scale ?? (optLevel === undefined ? 1 : undefined);
  const recipe = refusing(() =>
    apexRecipe(level, {
      ...(keeps !== undefined && { keepBatchNormFloat32: keeps }),
      ...(lossScale !== undefined && { lossScale }),
    }),
  );
  const preset = optLevel === undefined ? "apexFp16Utils" : "apex";
  return withScale(recipe, undefined, flags, preset, warnings);
}

/** A loss scale without a precision means float16, as in the commands of apex's READMEs. */
const impliesFp16 = (flags: PrecisionFlags): boolean =>
  flags.optLevel === undefined &&
  flags.precision === undefined &&
  (flags.staticLossScale !== undefined ||
    flags.lossScale !== undefined ||
    flags.dynamicLossScale === true);

const impliesDynamic = (flags: PrecisionFlags): boolean =>
  flags.initScale !== undefined &&
  (flags.optLevel ?? flags.precision ?? flags.lossScale ?? flags.staticLossScale) === undefined;

/** Whether anything is float16, so that the loss has to be scaled. */
const isHalf = ({ optLevel, fp16, precision }: PrecisionFlags): boolean => {
  if (optLevel !== undefined) return optLevel !== "O0";
  if (fp16) return true;
  const { params, compute } = recipeFor(precision ?? "float32");
  return params === "float16" || compute === "float16";
};

/** The loss scale from the flags; undefined where the recipe decides. */
function scaleOf(flags: PrecisionFlags, warnings: string[]): number | "dynamic" | undefined {
  const { staticLossScale, dynamicLossScale, lossScale } = flags;
  if (dynamicLossScale) {
    for (const [flag, value] of [
      ["--static-loss-scale", staticLossScale],
      ["--loss-scale", lossScale === "dynamic" ? undefined : lossScale],
    ])
      if (value !== undefined)
        warnings.push(`--dynamic-loss-scale supersedes ${flag} ${value}, which is ignored`);
    return "dynamic";
  }
  const given = lossScale === undefined ? undefined : parsedScale(lossScale);
  if (given !== undefined && staticLossScale !== undefined && given !== staticLossScale)
    throw new UsageError(
      `--loss-scale ${lossScale} and --static-loss-scale ${staticLossScale} contradict each other: give one of them`,
    );
  return given ?? staticLossScale;
}

/** Without float16 the loss needs no scale, but apex's O0 accepts one. */
function ignoredScales(flags: PrecisionFlags, warnings: string[]): number | "dynamic" | undefined {
  const { staticLossScale, dynamicLossScale, lossScale, optLevel } = flags;
  const ignore = (flag: string): unknown =>
    warnings.push(`Warning: ${flag} is ignored, since nothing is float16: add --fp16`);
  if (staticLossScale !== undefined) ignore(`--static-loss-scale ${staticLossScale}`);
  if (dynamicLossScale) ignore("--dynamic-loss-scale");
  if (lossScale === undefined) return undefined;
  if (optLevel !== undefined) return parsedScale(lossScale);
  ignore(`--loss-scale ${lossScale}`);
  return undefined;
}

function withScale(
  given: Recipe,
  scale: number | "dynamic" | undefined,
  { initScale }: PrecisionFlags,
  preset: "apex" | "apexFp16Utils" | undefined,
  warnings: string[],
): ChosenPrecision {
  const recipe = scale === undefined ? given : { ...given, lossScale: scale };
  const isDynamic = recipe.lossScale === "dynamic";
  if (initScale !== undefined && !isDynamic)
    warnings.push(`--init-scale ${initScale} is ignored: the loss scale is not dynamic`);
  return {
    recipe,
    scaler: {
      ...(isDynamic && preset !== undefined ? { preset } : scalerOptionsFor(recipe)),
      ...(isDynamic && initScale !== undefined && { initScale }),
    },
    warnings,
  };
}

const parsedScale = (text: string): number | "dynamic" =>
  refusing(() => apexRecipe("O2", { lossScale: text })).lossScale;

/** Turns a refusal of apex into a usage error. */
function refusing<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
