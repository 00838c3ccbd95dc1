import { type CastDType, currentRegion, policyOf, resolveCast } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { isFloat8, isFloating } from "@halfstep/formats/dtypes";
import { type ArgumentCheck, argumentCheck } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import { optional, tensors } from "../arguments/kinds.js";
import { anything } from "../arguments/own-kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { dependOn } from "../autograd/grad-node.js";
import { RecordingError } from "../errors.js";
import type { CastDecision } from "../record/cast-decision.js";
import { noteOp } from "../record/op-notes.js";
import { currentScope } from "../record/scope.js";
import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { castOperand } from "./cast.js";
import { checkSpecs, checkWritten } from "./check-results.js";
import type { OpDefinition, Operand } from "./op.js";
import { opListener } from "./trace.js";

/**
 * Applies an op: casts its inputs by the autocast policy, checks them, records its launches, and registers it for
 * autograd.
 */
export function dispatch(
  op: OpDefinition<unknown>,
  inputs: readonly Tensor[],
  attributes: unknown,
): readonly Tensor[] {
  const runtime = runtimeOf(op.name, inputs);
  const { recorder } = runtime;
  recorder.beforeOp();
  const cast = castInputs(op, inputs);
  const operands = cast.map(operandOf);
  const specs = op.shape(cast, attributes);
  checkSpecs(op.name, specs);
  const outputs = specs.map(({ shape, dtype }) => recorder.result(shape, dtype));
  const { recording } = recorder;
  const first = recording.launches.length;
  try {
    const returned: unknown = op.forward({
      target: recorder.scratchTarget,
      inputs: operands,
      outputs: outputs.map(operandOf),
      attributes,
    });
    checkWritten(op.name, returned, recording.launches, first, outputs);
  } catch (error) {
    // Outside a step every tensor with a handle is kept; these outputs were never written.
    for (const output of outputs) output.dispose();
    throw error;
  }
  if (recording.notes) {
    const { composite, decision = decisionFor(op, cast) } = currentScope() ?? {};
    noteOp(recording, first, composite ?? op.name, cast, outputs, decision);
  }
  if (isGradEnabled() && op.backward !== "none" && cast.some(({ requiresGrad }) => requiresGrad)) {
    dependOn(cast, outputs as [Tensor, ...Tensor[]], op, attributes);
  }
  report(op, attributes, inputs, cast, outputs);
  return outputs;
}

const checkInputs = (op: string): ArgumentCheck =>
  argumentCheck(`${op}.apply`, { inputs: tensors, attributes: optional(anything) });

/** The one runtime of an op's inputs. */
function runtimeOf(op: string, inputs: readonly Tensor[]): Runtime {
  if (!Array.isArray(inputs) || !inputs.every(isTensor)) checkInputs(op)([inputs]);
  const runtime = inputs[0]?.runtime;
  if (!runtime) throw new RecordingError(`${op} needs at least one tensor`);
  for (const { runtime: other } of inputs)
    if (other !== runtime)
      throw new RecordingError(
        `${op}: its inputs belong to different runtimes. Make all tensors with one runtime, or copy the data over.`,
      );
  return runtime;
}

/** Reports the application to the listener of ops, if there is one. */
function report(
  op: OpDefinition<unknown>,
  attributes: unknown,
  inputs: readonly Tensor[],
  cast: readonly Tensor[],
  outputs: readonly Tensor[],
): void {
  const listener = opListener();
  if (!listener) return;
  listener({
    ...decisionFor(op, cast),
    op: op.name,
    definition: op,
    attributes,
    module: currentScope()?.path() ?? "",
    ownPolicy: op.castPolicy,
    inputs,
    operands: cast,
    results: outputs,
    outputs: outputs.map(dtypeOf),
  });
}

function decisionFor(op: OpDefinition<unknown>, cast: readonly Tensor[]): CastDecision {
  const region = currentRegion();
  return { policy: policyOf(op, region), region, cast: cast.map(dtypeOf) };
}

const operandOf = (tensor: Tensor): Operand => tensor.operand();

const dtypeOf = ({ dtype }: Tensor): DType => dtype;

function castInputs(op: OpDefinition<unknown>, inputs: readonly Tensor[]): readonly Tensor[] {
  const dtype = castDType(op, inputs);
  if (!dtype || inputs.every((input) => input.dtype === dtype)) return inputs;
  return inputs.map((input) => (isFloating(input.dtype) ? castOperand(input, dtype) : input));
}

/** The dtype in which an op takes its floating inputs here; undefined where they stay as they are. */
export function castDType(
  op: Pick<OpDefinition<unknown>, "name" | "castPolicy">,
  inputs: readonly Tensor[],
): CastDType | undefined {
  const region = currentRegion();
  const policy = policyOf(op, region);
  const hasFloat8 = inputs.some(isStored8);
  // Most ops of a step need no more, because backward passes and float32 steps are outside of enabled regions.
  if (!hasFloat8 && (policy === "none" || !(region?.enabled || policy === "promote")))
    return undefined;
  const given = inputs.map(dtypeOf);
  // 8 bits are for storage: they are computed with in the dtype of the other operands, or in float32.
  const standIn = hasFloat8 ? commonDType(given) : undefined;
  const dtypes = standIn ? given.map((dtype) => (isFloat8(dtype) ? standIn : dtype)) : given;
  const resolved = resolveCast(policy, dtypes, region);
  // Outside autocast mixed operands promote as well, as in torch: there float16 and bfloat16 meet in float32.
  return resolved ?? (policy === "promote" && isMixed(dtypes) ? "float32" : standIn);
}

const isStored8 = ({ dtype }: Tensor): boolean => isFloat8(dtype);

const isMixed = (dtypes: readonly DType[]): boolean => {
  const first = dtypes.find(isFloating);
  return dtypes.some((dtype) => dtype !== first && isFloating(dtype));
};

/** The dtype in which operands are computed together; 8-bit operands are ignored. */
function commonDType(dtypes: readonly DType[]): CastDType {
  const computed = new Set(dtypes.filter((dtype) => isFloating(dtype) && !isFloat8(dtype)));
  const [only] = computed as Set<CastDType>;
  return only && computed.size === 1 ? only : "float32";
}
