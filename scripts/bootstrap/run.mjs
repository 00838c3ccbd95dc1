import { spawn } from "node:child_process";

/** The last `count` lines of a text that are not blank. */
export const lastLines = (text, count) =>
  text
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== "")
    .slice(-count);

const width = 78;

/**
 * Runs a command to its end, collecting its output and showing the elapsed time: in place on a terminal, a line every ten
 * seconds elsewhere.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ label: string, cwd?: string, env?: Record<string, string | undefined>, stream?: NodeJS.WriteStream }} options
 * @returns {Promise<{ code: number, output: string, seconds: number }>} code is 127 when the command cannot be started
 */
export const run = (command, args, { label, cwd, env = process.env, stream = process.stdout }) =>
  new Promise((resolve) => {
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    let output = "";
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
    });
    const keep = (chunk) => {
      output = (output + chunk).slice(-200_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);

    const inPlace = stream.isTTY;
    const tick = setInterval(
      () => {
        const line = `  ${label}, ${seconds().toFixed(0)} s: ${lastLines(output, 1)[0] ?? ""}`;
        const shown = line.slice(0, width);
        stream.write(inPlace ? `\r${shown.padEnd(width)}` : `${shown}\n`);
      },
      inPlace ? 500 : 10_000,
    );
    const end = (code) => {
      clearInterval(tick);
      if (inPlace) stream.write(`\r${" ".repeat(width)}\r`);
      resolve({ code, output, seconds: seconds() });
    };
    child.on("error", (error) => {
      keep(`${error.message}\n`);
      end(127);
    });
    child.on("close", (code) => end(code ?? 1));
  });
