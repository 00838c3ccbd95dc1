import { render, type VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { numberText } from "../formats/number-text.js";
import { Shell } from "../site/shell.js";
import type { TensorExam } from "./examine.js";
import type { FileToExamine, Finding } from "./protocol.js";
import { verdictOf } from "./verdict.js";

const formatNames = ["float16", "bfloat16", "float8e4m3fn", "float8e5m2"] as const;

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

function statusOf(report: Report | undefined): string {
  if (report === undefined || report.failure !== undefined) return "";
  const { exams, name } = report;
  if (name === undefined) return `${exams.length} tensors so far`;
  const broken = formatNames.filter((_, i) =>
    exams.some(({ losses }) => (losses?.[i]?.overflow ?? 0) > 0),
  );
  const verdict =
    broken.length === 0
      ? "Nothing overflows in any of the four."
      : `Overflows in ${broken.join(", ")}.`;
  return `${name}: ${exams.length} tensors. ${verdict}`;
}

function Exams({ exams }: { exams: readonly TensorExam[] }): VNode {
  return (
    <section class="toy" aria-labelledby="exams">
      <h2 id="exams">Tensor by tensor</h2>
      <p>
        Overflow is the worst: one infinite weight spoils every result. Numbers that become 0 are
        gone. The rest is off by the mean relative error after ±. A scale for each tensor, as float8
        training has it, moves numbers back into range.
      </p>

      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keyboard */}
      <section class="scroll" tabIndex={0} aria-label="Losses by tensor">
        <table class="exams">
          <thead>
            <tr>
              <th scope="col">tensor</th>
              <th scope="col">stored as</th>
              <th scope="col">largest</th>
              {formatNames.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {exams.map(({ name, dtype, shape, largest, losses }) => (
              <tr key={name}>
                <th scope="row">
                  {name} <small>{shape.length === 0 ? "scalar" : shape.join(" × ")}</small>
                </th>
                <td>{dtype}</td>
                <td class="figure">{losses ? numberText(largest, 3) : "—"}</td>
                {formatNames.map((format, i) => {
                  const loss = losses?.[i];
                  if (loss === undefined) return <td key={format}>—</td>;
                  const { grade, text } = verdictOf(loss);
                  return (
                    <td key={format} class={`verdict ${grade}`}>
                      {text}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

render(<FilePage />, document.getElementById("page") as HTMLElement);
