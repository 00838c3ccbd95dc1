import { type CastDType, currentRegion, policyOf, resolveCast } from "@halfstep/autocast";
import { type DType, isFloat8 } from "@halfstep/device";
import { castOperand, isFloating } from "./cast.js";
import { RecordingError } from "./errors.js";
import { isGradEnabled } from "./grad-mode.js";
import { dependOn } from "./grad-node.js";
import { isTensor } from "./is-tensor.js";
import type { Op, OpDefinition, Operand } from "./op.js";
import { noteOp } from "./op-notes.js";
import { currentScope } from "./scope.js";
import type { Tensor } from "./tensor.js";
import { opListener } from "./trace.js";

/** Applies an op: casts its inputs as autocast wants, checks them, records its launches, and notes it for autograd. */
export function dispatch(
  op: Op<unknown>,
  inputs: readonly Tensor[],
  attributes: unknown,
): readonly Tensor[] {
  if (!Array.isArray(inputs))
    throw new TypeError(
      `${op.name} takes its tensors in a list: ${op.name}([x], attributes), null where it has none`,
    );
  for (const input of inputs)
    if (!isTensor(input))
      throw new TypeError(
        `${op.name}: ${String(input)} is no tensor: make one with runtime.tensor()`,
      );
  const runtime = inputs[0]?.runtime;
  if (!runtime) throw new RecordingError(`${op.name} needs at least one tensor`);
  for (const { runtime: other } of inputs)
    if (other !== runtime)
      throw new RecordingError(
        `${op.name}: its inputs belong to different runtimes. Make all tensors with one runtime, or copy the data over.`,
      );
  runtime.recorder.beforeOp();
  const cast = castInputs(op, inputs);
  const operands = cast.map(operandOf);
  const specs = op.shape(cast, attributes);
  const outputs = specs.map(({ shape, dtype }) => runtime.recorder.result(shape, dtype));
  try {
    noteOp(runtime.recording, { op: op.name, inputs: cast, outputs }, () =>
      op.forward({
        target: runtime.recorder.scratchTarget,
        inputs: operands,
        outputs: outputs.map(operandOf),
        attributes,
      }),
    );
  } catch (error) {
    // Outside a step every handle is kept, and nothing has written these.
    for (const output of outputs) output.dispose();
    throw error;
  }
  if (isGradEnabled() && op.backward !== "none" && cast.some(({ requiresGrad }) => requiresGrad)) {
    dependOn(cast, outputs as [Tensor, ...Tensor[]], op, attributes);
  }
  const listener = opListener();
  if (listener) {
    const region = currentRegion();
    listener({
      op: op.name,
      module: currentScope()?.path() ?? "",
      policy: policyOf(op, region),
      ownPolicy: op.castPolicy,
      region,
      inputs,
      cast: cast.map(dtypeOf),
      outputs: outputs.map(dtypeOf),
    });
  }
  return outputs;
}

const operandOf = (tensor: Tensor): Operand => tensor.operand();

const dtypeOf = ({ dtype }: Tensor): DType => dtype;

function castInputs(op: Op<unknown>, inputs: readonly Tensor[]): readonly Tensor[] {
  const dtype = castDType(op, inputs);
  if (!dtype) return inputs;
  return inputs.map((input) => (isFloating(input.dtype) ? castOperand(input, dtype) : input));
}

/** The dtype in which an op takes its floating inputs here; undefined where they stay as they are. */
export function castDType(
  op: Pick<OpDefinition<unknown>, "name" | "castPolicy">,
  inputs: readonly Tensor[],
): CastDType | undefined {
  const region = currentRegion();
  const given = inputs.map(dtypeOf);
  // 8 bits are for storage: they are computed with in the dtype of the other operands, or in float32.
  const standIn = given.some(isFloat8) ? commonDType(given) : undefined;
  const dtypes = standIn ? given.map((dtype) => (isFloat8(dtype) ? standIn : dtype)) : given;
  const policy = policyOf(op, region);
  const isMixed = policy === "promote" && new Set(dtypes.filter(isFloating)).size > 1;
  // Outside autocast mixed operands promote as well, as in torch: there float16 and bfloat16 meet in float32.
  return resolveCast(policy, dtypes, region) ?? (isMixed ? "float32" : standIn);
}

/** What operands are computed with in together, those of 8 bits aside. */
function commonDType(dtypes: readonly DType[]): CastDType {
  const computed = new Set(dtypes.filter((dtype) => isFloating(dtype) && !isFloat8(dtype)));
  const [only] = computed as Set<CastDType>;
  return only && computed.size === 1 ? only : "float32";
}
