import type { Module } from "@halfstep/nn";
import { type OnnxOptions, toOnnx } from "@halfstep/onnx";
import type { Command } from "commander";
import { recipeFor } from "../precision.js";
import { oneOf } from "./values.js";

const precisions = ["float32", "float16"] as const;

/** The flag of exports that write ONNX. */
export interface OnnxFlag {
  /** What the file computes in; undefined where none is asked for. */
  readonly onnx?: (typeof precisions)[number];
}

/** Adds `--onnx` to an export. */
export const onnxFlag = (each: Command): Command =>
  each.option(
    "--onnx <precision>",
    "writes an ONNX file that computes in float32, or in float16 where training in float16 does",
    oneOf(precisions),
  );

/** The bytes of an ONNX file of a model with float32 weights, by the precision that `--onnx` names. Its results are float32. */
export const onnxFile = (
  model: Module,
  inputs: readonly unknown[],
  { onnx = "float32" }: OnnxFlag,
  options: Omit<OnnxOptions, "recipe" | "float32Outputs"> = {},
): Promise<Uint8Array<ArrayBuffer>> =>
  toOnnx(model, inputs, { ...options, recipe: recipeFor(onnx), float32Outputs: true });
