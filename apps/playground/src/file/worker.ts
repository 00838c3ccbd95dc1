import { examine } from "./examine.js";
import { exampleFile } from "./example-file.js";
import type { FileToExamine, Finding } from "./protocol.js";

const tell = (finding: Finding): void => postMessage(finding);

addEventListener("message", async ({ data: { file } }: MessageEvent<FileToExamine>) => {
  try {
    const name = file?.name ?? "an example";
    const bytes = file ? await file.arrayBuffer() : exampleFile();
    for (const exam of examine(bytes, name)) tell({ type: "tensors", exams: [exam] });
    tell({ type: "done", name });
  } catch (error) {
    tell({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  }
});
