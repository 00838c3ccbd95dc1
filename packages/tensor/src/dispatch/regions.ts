import { currentRegion } from "@halfstep/autocast";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { RecordingError } from "../errors.js";
import { isTracing } from "./tracing.js";

/**
 * Refuses an asynchronous call inside a region: it would record when the region has ended.
 * @throws RecordingError
 */
export function requireNoRegion(call: string): void {
  const region = openRegion();
  if (region)
    throw new RecordingError(
      `${call} inside ${region}: the region ends before the step is recorded. Call ${region} in the function of the step.`,
    );
}

function openRegion(): string | undefined {
  if (!isGradEnabled()) return "noGrad()";
  if (currentRegion()) return "autocast()";
  return isTracing() ? "traceOps()" : undefined;
}
