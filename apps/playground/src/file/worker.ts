import { examine, type TensorExam } from "./examine.js";
import { exampleFile } from "./example-file.js";
import type { FileToExamine, Finding } from "./protocol.js";

/** Milliseconds between messages: a page that draws after each of 20,000 tensors would not end. */
const pause = 100;

const tell = (finding: Finding): void => postMessage(finding);

addEventListener("message", async ({ data: { file } }: MessageEvent<FileToExamine>) => {
  const name = file?.name ?? "an example";
  try {
    let exams: TensorExam[] = [];
    let told = performance.now();
    const onCount = (count: number): void => tell({ type: "opened", name, count });
    for await (const exam of examine(file ?? new Blob([exampleFile()]), name, onCount)) {
      exams.push(exam);
      if (performance.now() - told < pause) continue;
      tell({ type: "tensors", exams });
      exams = [];
      told = performance.now();
    }
    tell({ type: "tensors", exams });
    tell({ type: "done" });
  } catch (error) {
    tell({ type: "failed", message: messageOf(error, name) });
  }
});

/** What went wrong, and what to do. */
function messageOf(error: unknown, name: string): string {
  // The browser cannot read the file itself.
  if (error instanceof DOMException)
    return `${name} is not there any more, or may not be read: choose it again.`;
  if (error instanceof RangeError && /allocation|length/i.test(error.message))
    return `${name} has a tensor that does not fit into the memory of this page: choose a file of smaller tensors.`;
  return error instanceof Error ? error.message : String(error);
}
