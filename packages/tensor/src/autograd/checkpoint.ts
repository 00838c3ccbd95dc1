import { autocast, currentRegion } from "@halfstep/autocast";
import { tensorsIn } from "../arguments/tensors-in.js";
import { RecordingError } from "../errors.js";
import { currentScope, inScope } from "../record/scope.js";
import { requireSynchronous } from "../record/synchronous.js";
import { isGradEnabled, withGradMode } from "./grad-mode.js";
import { type Draws, openSegment, runAgain, runOpen, type Segment } from "./recomputation.js";

/**
 * Calls `fn(...inputs)` and keeps none of its intermediate results: the backward pass calls it again, from the inputs. This saves
 * memory and costs time, as torch.utils.checkpoint does (Chen et al. 2016, "Training deep nets with sublinear memory cost"), and
 * changes no bit of first-order gradients.
 *
 * The second call is made under the same autocast region, draws the same random numbers and changes no variable, so that running
 * statistics move once. Variables that `fn` reads besides its inputs (parameters, tensors that it closes over) must not be assigned in
 * between. Checkpoints may be nested, and `fn` may return tensors in arrays, maps and plain objects; where several of them reach the
 * loss by separate paths, the backward pass may hold more than one checkpoint's results at a time. Gradients of gradients
 * (`createGraph`) are added in another order, so that their last bits may differ.
 *
 * ```ts
 * for (const block of this.blocks) x = checkpoint((x) => block.forward(x), x);
 * ```
 *
 * @throws RecordingError in `backward()`, if `fn` did something else when it was called again
 */
export function checkpoint<A extends readonly unknown[], R>(
  fn: (...inputs: A) => R,
  ...inputs: A
): R {
  const call = (): R => requireSynchronous("checkpoint", fn(...inputs));
  if (!isGradEnabled()) return call();
  const [first] = tensorsIn(inputs);
  if (!first)
    throw new RecordingError(
      "checkpoint() needs a tensor among its inputs: what the function closes over is kept in any case",
    );
  const { runtime } = first;
  const draws = new Map<Draws, number>();
  const region = currentRegion();
  const scope = currentScope();
  const castsBefore = runtime.recording.casts.snapshot();
  const outer = openSegment();
  const segment: Segment = {
    outer: outer?.segment && { segment: outer.segment, index: outer.tape.inner.length },
    tape: { nodes: [], inner: [] },
    again: () =>
      runAgain(draws, () =>
        // The recomputation makes its own casts.
        runtime.recording.casts.during(castsBefore, () =>
          withGradMode(true, () =>
            autocast(region ?? { enabled: false }, () =>
              inScope({ path: scope?.path ?? (() => ""), backwardOf: "checkpoint" }, call as never),
            ),
          ),
        ),
      ),
  };
  outer?.tape.inner.push(segment);
  return runOpen(segment, draws, call);
}
