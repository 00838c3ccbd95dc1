import type { AutocastRegion, CastPolicy } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";

/** What autocast decided for one application of an op. */
export interface CastDecision {
  /** The policy in effect, after the overrides of the region. */
  readonly policy: CastPolicy;
  readonly region: AutocastRegion | undefined;
  /** Dtypes of the arguments after casts. */
  readonly cast: readonly DType[];
}
