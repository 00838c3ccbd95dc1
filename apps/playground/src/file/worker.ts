import { examine, type TensorExam } from "./examine.js";
import { exampleFile } from "./example-file.js";
import type { FileToExamine, Finding } from "./protocol.js";

/** Milliseconds between messages: a page that draws after each of 20,000 tensors would not end. */
const pause = 100;

const tell = (finding: Finding): void => postMessage(finding);

addEventListener("message", async ({ data: { file } }: MessageEvent<FileToExamine>) => {
  try {
    const name = file?.name ?? "an example";
    let exams: TensorExam[] = [];
    let told = performance.now();
    for await (const exam of examine(file ?? new Blob([exampleFile()]), name)) {
      exams.push(exam);
      if (performance.now() - told < pause) continue;
      tell({ type: "tensors", exams });
      exams = [];
      told = performance.now();
    }
    tell({ type: "tensors", exams });
    tell({ type: "done", name });
  } catch (error) {
    tell({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  }
});
