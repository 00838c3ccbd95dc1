import { type ScalerPreset, scalerRule } from "@halfstep/grad-scaler";
import { InvalidArgumentError } from "commander";
import { recipeFor } from "../precision.js";

// Parsers of values for commander's `option()` and `argParser()`. All throw its InvalidArgumentError, which says what the value
// must be; commander puts the flag before it.

/** A whole number of at least `least`. */
export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < least || text.trim() === "")
      throw new InvalidArgumentError(`it must be a whole number from ${least} on.`);
    return value;
  };

/** The path of a folder. */
export function folderName(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("it must name a folder.");
  return text;
}

/** A finite number above 0. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value))
    throw new InvalidArgumentError("it must be a number above 0.");
  return value;
}

/** A finite number from 0 on. */
export function notNegative(text: string): number {
  const value = Number(text);
  if (!(value >= 0) || !Number.isFinite(value) || text.trim() === "")
    throw new InvalidArgumentError("it must be a number from 0 on.");
  return value;
}

/** A number from 0 to 1, both included. */
export function fraction(text: string): number {
  const value = Number(text);
  if (!(value >= 0 && value <= 1) || text.trim() === "")
    throw new InvalidArgumentError("it must be a number from 0 to 1.");
  return value;
}

/** One of some names. */
export const oneOf =
  <const Name extends string>(names: readonly Name[]) =>
  (text: string): Name => {
    const found = names.find((name) => name === text.trim());
    if (found === undefined)
      throw new InvalidArgumentError(`${JSON.stringify(text)} is none of ${names.join(", ")}.`);
    return found;
  };

/**
 * A list of allowed names, separated by commas, each at most once.
 * @param what the singular for messages: "precision"
 */
export const listOf =
  <const Name extends string>(names: readonly Name[], what = "name") =>
  (text: string): readonly Name[] => {
    const chosen = text.split(",").map((part) => oneOf(names)(part.trim()));
    if (new Set(chosen).size !== chosen.length)
      throw new InvalidArgumentError(`each ${what} may be named once.`);
    return chosen;
  };

/** The name of a precision recipe: "float16", "O2", "params=float32,compute=bfloat16,output=float32". */
export function precisionName(text: string): string {
  try {
    recipeFor(text);
    return text;
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
}

/** The name of an encoding that `TextDecoder` knows: "utf-8", "latin1", "shift_jis". */
export function encodingName(text: string): string {
  try {
    new TextDecoder(text);
    return text;
  } catch {
    throw new InvalidArgumentError(
      "there is no such encoding: utf-8, utf-16le, latin1, windows-1251, shift_jis, …",
    );
  }
}

/** A loss scale that a `GradScaler` of that preset can start from. */
export const lossScale =
  (preset?: ScalerPreset) =>
  (text: string): number => {
    const initScale = positiveNumber(text);
    try {
      return scalerRule(preset, { initScale }).initScale;
    } catch (error) {
      throw new InvalidArgumentError((error as RangeError).message);
    }
  };
