import { render, type VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { Shell } from "../site/shell.js";
import type { TensorExam } from "./examine.js";
import { Exams, formatNames } from "./exams.js";
import type { FileToExamine, Finding } from "./protocol.js";

interface Report {
  readonly exams: readonly TensorExam[];
  /** The file's name, when all of it was read. */
  readonly name?: string;
  readonly failure?: string;
}

function FilePage(): VNode {
  const [report, setReport] = useState<Report>();
  const [isOver, setIsOver] = useState(false);
  const worker = useRef<Worker | undefined>(undefined);
  const examine = (file: File | undefined): void => {
    // A file that is still being read is left: the worker of another one ends.
    worker.current?.terminate();
    const started = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.current = started;
    setReport({ exams: [] });
    started.addEventListener("message", ({ data }: MessageEvent<Finding>) => {
      setReport((old) => afterFinding(old ?? { exams: [] }, data));
    });
    started.addEventListener("error", ({ message }) => {
      setReport((old) => ({ exams: old?.exams ?? [], failure: message }));
    });
    started.postMessage({ file } satisfies FileToExamine);
  };
  return (
    <Shell page="file">
      <section class="hero">
        <h1>What would your weights lose?</h1>
        <p class="lead">
          Drop a safetensors file. Each tensor is rounded to four narrow formats, and you see what
          is left of it. The file stays on your machine.
        </p>
        <label
          class={isOver ? "drop over" : "drop"}
          onDragOver={(event) => {
            event.preventDefault();
            setIsOver(true);
          }}
          onDragLeave={() => setIsOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setIsOver(false);
            const file = event.dataTransfer?.files[0];
            if (file) examine(file);
          }}
        >
          <b>Drop a file here, or choose one</b>
          <input
            type="file"
            accept=".safetensors"
            onChange={({ currentTarget }) => {
              const file = currentTarget.files?.[0];
              if (file) examine(file);
            }}
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
            <b>This file cannot be read.</b> {report.failure}
          </p>
        )}
      </section>
      {report !== undefined && report.exams.length > 0 && <Exams exams={report.exams} />}
    </Shell>
  );
}

function afterFinding(report: Report, finding: Finding): Report {
  switch (finding.type) {
    case "tensors":
      return { ...report, exams: [...report.exams, ...finding.exams] };
    case "done":
      return { ...report, name: finding.name };
    case "failed":
      return { ...report, failure: finding.message };
  }
}

const counted = (count: number): string => `${count} ${count === 1 ? "tensor" : "tensors"}`;

function statusOf(report: Report | undefined): string {
  if (report === undefined || report.failure !== undefined) return "";
  const { exams, name } = report;
  if (name === undefined) return `${counted(exams.length)} so far`;
  const broken = formatNames.filter((_, i) =>
    exams.some(({ losses }) => (losses?.[i]?.overflow ?? 0) > 0),
  );
  const verdict =
    broken.length === 0
      ? "Nothing overflows in any of the four."
      : `Overflows in ${broken.join(", ")}.`;
  return `${name}: ${counted(exams.length)}. ${verdict}`;
}

render(<FilePage />, document.getElementById("page") as HTMLElement);
