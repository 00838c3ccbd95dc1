import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ended } from "../site/sentence.js";
import { Shell } from "../site/shell.js";
import { showPage } from "../site/show-page.js";
import { useUrlState } from "../site/url-state.js";
import { workerErrorText } from "../site/worker-error.js";
import { Exams } from "./exams.js";
import { fileFields } from "./page-state.js";
import type { FileToExamine, Finding } from "./protocol.js";
import { afterFinding, begun, failed, type Report, statusOf } from "./report.js";
import { useFileDrop } from "./use-file-drop.js";

function FilePage(): VNode {
  const [state, change, strange] = useUrlState(fileFields);
  const [report, setReport] = useState<Report>();
  const worker = useRef<Worker | undefined>(undefined);
  const examine = (file: File | undefined, others = 0): void => {
    // A file that is still being read is left: the worker of another one ends.
    worker.current?.terminate();
    const started = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.current = started;
    setReport({ ...begun, others });
    change({ file: file === undefined ? "example" : "none" });
    started.addEventListener("message", ({ data }: MessageEvent<Finding>) => {
      setReport((old) => afterFinding(old ?? begun, data));
    });
    started.addEventListener("error", (event) => {
      setReport((old) => failed(old ?? begun, workerErrorText(event)));
    });
    started.postMessage({ file } satisfies FileToExamine);
  };
  const examineFirst = (files: ArrayLike<File>): void => {
    if (files.length > 0) examine(files[0], files.length - 1);
  };
  const isOver = useFileDrop(examineFirst, (name) => {
    worker.current?.terminate();
    setReport(failed(begun, `${name} is a folder: choose a file in it.`));
    change({ file: "none" });
  });
  useEffect(() => {
    if (state.file === "example") examine(undefined);
  }, []);
  return (
    <Shell page="file" strange={strange}>
      <section class="hero">
        <h1>What would your weights lose?</h1>
        <p class="lead">
          Drop a safetensors file. Each tensor is rounded to four narrow formats, and you see what
          is left of it. The file stays on your machine.
        </p>
        <label class={isOver ? "drop over" : "drop"}>
          <b>Drop a file here, or choose one</b>
          <input
            type="file"
            accept=".safetensors"
            onClick={({ currentTarget }) => {
              // A file that was saved again is chosen again.
              currentTarget.value = "";
            }}
            onChange={({ currentTarget }) => examineFirst(currentTarget.files ?? [])}
          />
        </label>
        <p>
          No file at hand?{" "}
          <button type="button" onClick={() => examine(undefined)}>
            Look at an example
          </button>
        </p>
        <p class="summary" role="status">
          {statusOf(report)}
        </p>
        {report?.failure && (
          <p class="notice" role="alert">
            <b>This file cannot be read.</b> {ended(report.failure)}
          </p>
        )}
      </section>
      {report !== undefined && report.exams.length > 0 && (
        <Exams
          exams={report.exams}
          isWorst={state.rows === "lossy"}
          onWorst={(isWorst) => change({ rows: isWorst ? "lossy" : "all" })}
        />
      )}
    </Shell>
  );
}

showPage(<FilePage />);
