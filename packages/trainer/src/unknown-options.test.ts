import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CheckpointFolder } from "./checkpoint/checkpoint-folder.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { RunFolder } from "./run-folder.js";
import { stopSignals } from "./stop-signals.js";
import { tensorBoardLog } from "./tensorboard/tensorboard-log.js";

test("unknown options are refused, before anything is made", () => {
  const wrong = { kepe: 1 } as never;
  const folder = join(mkdtempSync(join(tmpdir(), "halfstep-options-")), "never");
  for (const call of [
    () => new CheckpointFolder(folder, wrong),
    () => new RunFolder(folder, wrong),
    () => tensorBoardLog(folder, wrong),
    () => memoryCheckpoints(wrong),
    () => stopSignals(wrong),
  ])
    expect(call).toThrow(/has no option kepe: it has/);
});
