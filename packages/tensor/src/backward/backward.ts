import { withoutAutocast } from "@halfstep/autocast";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { checkGradients } from "../autograd/check-gradients.js";
import { withGradMode } from "../autograd/grad-mode.js";
import type { BackwardRule, GradNode } from "../autograd/grad-node.js";
import { releaseSaved } from "../autograd/kept-graph.js";
import { Recomputations } from "../autograd/recomputation.js";
import { type GradientMarks, joinMarks, marksBelow, noteMarks } from "../autograd/scale-marks.js";
import { versionAt } from "../autograd/versions.js";
import { castTo } from "../dispatch/cast.js";
import { ClosedTensorError, RecordingError, ShapeError } from "../errors.js";
import * as ops from "../ops/index.js";
import { foldAccumulations } from "../plan/passes/fold-accumulations.js";
import { rematerializeSums } from "../plan/passes/rematerialize-sums.js";
import { inEachScope, type Scope } from "../record/scope.js";
import type { Tensor } from "../tensor/tensor.js";
import { Gradients } from "./gradients.js";

/** Options of `backward()` and {@link grad}. */
export interface BackwardOptions {
  /** Gradient of the result, of its shape. Default: one, for a result of one element. */
  readonly gradient?: Tensor;
  /** Keep the graph for another backward pass. Default: as `createGraph`. */
  readonly retainGraph?: boolean;
  /** Record the backward pass itself, so that gradients can be differentiated again. Default false. */
  readonly createGraph?: boolean;
}

const optionKinds = kinds.optionals({
  gradient: kinds.tensor,
  retainGraph: kinds.flag,
  createGraph: kinds.flag,
});

/**
 * Computes the gradients of a tensor with respect to every leaf that requires one, and assigns them to, or adds them to, the leaves'
 * `grad`: the method `backward()` of tensors, as a function.
 *
 * @example
 * backward(scaledValue(scaler.scale(loss)));
 */
export const backward: (root: Tensor, options?: BackwardOptions) => void = checked(
  "backward",
  { root: kinds.tensor, options: optionKinds },
  (root: Tensor, options: BackwardOptions = {}): void => {
    const { createGraph = false } = options;
    const { gradients, marks } = propagate(root, options);
    withGradMode(createGraph, () =>
      withoutAutocast(() => {
        for (const [leaf, gradient] of gradients)
          if (leaf.requiresGrad && !leaf.gradNode) accumulate(leaf, gradient, marks(leaf));
      }),
    );
  },
);

/**
 * Gradients of `root` with respect to `sources`, as new tensors; no `grad` changes. A source that `root` does not depend on
 * gives undefined.
 */
export const grad: (
  root: Tensor,
  sources: readonly Tensor[],
  options?: BackwardOptions,
) => readonly (Tensor | undefined)[] = checked(
  "grad",
  { root: kinds.tensor, sources: kinds.tensors, options: optionKinds },
  (root: Tensor, sources: readonly Tensor[], options: BackwardOptions = {}) => {
    const { gradients, marks } = propagate(root, options, new Set(sources));
    return sources.map((source) => {
      const gradient = owned(gradients.get(source));
      if (gradient) noteMarks(gradient, marks(source));
      return gradient;
    });
  },
);

/** A gradient that is a variable (such as the given root gradient) is returned as a copy, which the caller owns. */
const owned = (gradient: Tensor | undefined): Tensor | undefined =>
  gradient?.storage.isResident ? gradient.mul(1) : gradient;

/** The gradients of a backward pass, and their marks. */
interface Propagated {
  readonly gradients: ReadonlyMap<Tensor, Tensor>;
  readonly marks: (tensor: Tensor) => GradientMarks;
}

function propagate(
  root: Tensor,
  { gradient, createGraph = false, retainGraph = createGraph }: BackwardOptions,
  sources?: ReadonlySet<Tensor>,
): Propagated {
  if (!root.requiresGrad)
    throw new RecordingError(
      "backward() needs a tensor that depends on one with requiresGrad; this one does not (was it made under noGrad?)",
    );
  if (gradient && gradient.shape.join() !== root.shape.join())
    throw new ShapeError(
      `backward() of a tensor of shape [${root.shape}] needs a gradient of that shape, not [${gradient.shape}]`,
    );
  const { runtime } = root;
  const { recording } = runtime;
  runtime.bring({ rematerializeSums, foldAccumulations });
  const nodes = reachable(root);
  const marks = marksBelow(root, nodes, gradient);
  recording.backwardStart ??= recording.launches.length;
  const after = recording.launches.at(-1);
  const gradients = new Gradients(root, gradient ?? seedOf(root));
  const recomputations = new Recomputations();
  const freed: FreedNode[] = [];
  runtime.recorder.onDrop(() => {
    for (const { node, inputs, position } of freed)
      Object.assign(node, { inputs, position, isFreed: false });
  });
  withGradMode(createGraph, () =>
    withoutAutocast(() => {
      inEachScope(nodes, scopeOf, (node) => {
        visit(node, gradients, recomputations, createGraph);
        if (!retainGraph && !node.isFreed && !node.op.savesNothing) {
          node.isFreed = true;
          freed.push({ node, inputs: node.inputs, position: node.position });
        }
        for (const output of node.outputs)
          if (output !== root && !sources?.has(output)) gradients.delete(output);
      });
      gradients.finish();
    }),
  );
  const last = recording.launches.at(-1);
  if (last && last !== after) recording.backwardPasses.push({ after, last });
  for (const { node } of freed) {
    releaseSaved(node, runtime);
    // A loss that the program still references must not keep the whole graph below it in memory.
    node.inputs = [];
    node.position = undefined;
  }
  return { gradients: gradients.finish(), marks };
}

/** The fields of a node before the backward pass freed it. */
interface FreedNode extends Pick<GradNode, "inputs" | "position"> {
  readonly node: GradNode;
}

const noModule = (): string => "";

const scopeOf = ({ op, scope }: GradNode): Scope => ({
  path: scope?.path ?? noModule,
  backwardOf: scope?.composite ?? op.name,
});

function seedOf(root: Tensor): Tensor {
  if (root.size !== 1)
    throw new ShapeError(
      `backward() of a tensor of shape [${root.shape}] needs a gradient of that shape: reduce it to a scalar, or pass { gradient }`,
    );
  const one = ops.reshape(root.runtime.one, root.shape);
  return withGradMode(false, () => castTo(one, root.dtype));
}

/** The nodes below a tensor, each after all that depend on it. */
function reachable(root: Tensor): readonly GradNode[] {
  const order: GradNode[] = [];
  const seen = new Set<GradNode>();
  /** The nodes from the root downwards, and the number of inputs of each that are still to be visited. */
  const path: GradNode[] = [];
  const left: number[] = [];
  const open = (node: GradNode | undefined): void => {
    if (!node || seen.has(node)) return;
    seen.add(node);
    path.push(node);
    left.push(node.inputs.length);
  };
  open(root.gradNode);
  while (path.length > 0) {
    const last = path.length - 1;
    const node = path[last] as GradNode;
    const input = (left[last] as number) - 1;
    left[last] = input;
    if (input >= 0) open(node.inputs[input]?.gradNode);
    else {
      order.push(node);
      path.pop();
      left.pop();
    }
  }
  return order.reverse();
}

function visit(
  node: GradNode,
  gradients: Gradients,
  recomputations: Recomputations,
  createGraph: boolean,
): void {
  const { op, inputs, outputs } = node;
  const incoming = outputs.map((output) => gradients.get(output));
  if (incoming.every((gradient) => gradient === undefined)) return;
  if (node.isFreed)
    throw new RecordingError(
      `backward() came to ${op.name} a second time, and its graph was freed by the first: pass { retainGraph: true } to the first, or detach() what the second should not differentiate, such as a state that is carried on`,
    );
  if (op.backward === "none") return;
  const [first] = incoming;
  const slice = first && op.slices?.takenBy(node);
  if (op.slices && slice) {
    const { join } = op.slices;
    const widened = (): Tensor =>
      gradientsOf(node, incoming, recomputations, createGraph)[0] as Tensor;
    gradients.addSlice(inputs[0] as Tensor, { ...slice, gradient: first, widened, join });
    return;
  }
  const given = gradientsOf(node, incoming, recomputations, createGraph);
  for (let i = 0; i < given.length; i++) {
    const gradient = given[i];
    if (gradient) gradients.add(inputs[i] as Tensor, gradient);
  }
}

/** The gradients of a node's inputs. */
function gradientsOf(
  node: GradNode,
  incoming: readonly (Tensor | undefined)[],
  recomputations: Recomputations,
  createGraph: boolean,
): readonly (Tensor | undefined)[] {
  const { inputs } = node;
  const { savesNothing } = node.op;
  const present = savesNothing ? node : recomputations.nodeFor(node);
  const rule = present.op.backward as BackwardRule<unknown>;
  const results = rule({
    inputs: savesNothing
      ? inputs
      : present.inputs.map((input) => asOf(input, present, createGraph)),
    outputs: present.outputs,
    gradients: incoming,
    needs: inputs.map(({ requiresGrad }) => requiresGrad),
    attributes: present.attributes,
  });
  checkGradients(node.op.name, results, inputs, "input");
  return inputs.map((input, i) => {
    const result = results[i];
    return result && input.requiresGrad ? castTo(result, input.dtype) : undefined;
  });
}

/** An input as the node read it: an older version is copied from before the write that replaced it. */
function asOf(input: Tensor, node: GradNode, createGraph: boolean): Tensor {
  try {
    input.assertUsable();
  } catch (error) {
    if (error instanceof ClosedTensorError)
      throw new ClosedTensorError(
        `backward() of ${node.op.name} needs a tensor of a step that has closed: call backward() in the step of its forward, or run that step with { keepGraph: true }. ` +
          "A state that is carried from step to step, as in truncated backpropagation, is cut off by state.detach()",
      );
    throw error;
  }
  return versionAt(input, node.clock, createGraph);
}

function accumulate(leaf: Tensor, gradient: Tensor, marks: GradientMarks): void {
  const variable = leaf.gradientVariable();
  const isFirst = leaf.grad === undefined;
  if (isFirst) ops.assign(variable, gradient, undefined);
  else ops.accumulate(variable, gradient);
  leaf.setGradientState(true, isFirst ? marks : joinMarks(leaf.gradientMarks, marks));
}
