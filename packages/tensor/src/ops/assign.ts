import { DTypeError } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import * as ownKinds from "../arguments/own-kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import type { Operand } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import { isSameShape } from "../shapes.js";
import type { Tensor, Variable } from "../tensor/tensor.js";

/** The value, copied where it lies in the variable's buffer: a launch may not read the buffer that it writes. */
const apart = (value: Tensor, variable: Variable): Tensor =>
  value.storage === variable.storage ? noGrad(() => value.expand(value.shape)) : value;

/** variable = value, unless the flag is set. */
export const assign: (variable: Variable, value: Tensor, unless: Operand | undefined) => void =
  checked(
    "assign",
    { variable: kinds.tensor, value: kinds.tensor, unless: kinds.optional(ownKinds.operand) },
    (variable: Variable, value: Tensor, unless: Operand | undefined): void => {
      const { runtime } = variable;
      if (
        variable.dtype !== value.dtype &&
        !(isFloating(variable.dtype) && isFloating(value.dtype))
      )
        throw new DTypeError(
          `assign: ${variable.name} is ${variable.dtype} and the value ${value.dtype}: cast the value with .to("${variable.dtype}")`,
        );
      runtime.recorder.beforeOp();
      if (!isSameShape(value.shape, variable.shape))
        throw new ShapeError(
          `assign: ${variable.name} has shape [${variable.shape}], the value has [${value.shape}]`,
        );
      const input = apart(value, variable).operand();
      const out = variable.operand();
      runtime.recorder.scratchTarget.launch(
        unless
          ? kernels.assignUnless({ input, unless, out })
          : kernels.elementwise(kernels.identity, [input], out),
      );
    },
  );

/** variable += value, in float32. @throws ShapeError unless both have one shape */
export const accumulate: (variable: Variable, value: Tensor) => void = checked(
  "accumulate",
  { variable: kinds.tensor, value: kinds.tensor },
  (variable: Variable, value: Tensor): void => {
    if (!isSameShape(value.shape, variable.shape))
      throw new ShapeError(
        `accumulate: ${variable.name} is [${variable.shape}] and the value [${value.shape}]: give them one shape`,
      );
    variable.runtime.recorder.beforeOp();
    const input = apart(value, variable).operand();
    variable.runtime.recorder.scratchTarget.launch(
      kernels.accumulate({ input, out: variable.operand() }),
    );
  },
);
