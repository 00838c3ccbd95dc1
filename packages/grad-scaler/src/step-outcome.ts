/** Whether an optimizer changed anything. */
export type StepStatus = "applied" | "skipped";

/** What became of one training step; the host learns it later, in order. */
export interface StepOutcome {
  /** Counts the calls of `update()`, from 1; goes on where a loaded state left off. */
  readonly step: number;
  /** `"skipped"` where any optimizer was. */
  readonly status: StepStatus;
  /** Each optimizer's, in the order in which they were first unscaled or stepped in this step. */
  readonly optimizers: readonly StepStatus[];
  /** Whether any gradient was infinite or NaN. A step can also be skipped because the loop unscaled and never stepped. */
  readonly foundInf: boolean;
  readonly scaleBefore: number;
  readonly scaleAfter: number;
  /** Outcomes directly before this one that nobody read in time and that are lost; 0 unless reading fell far behind. */
  readonly lostBefore: number;
}
