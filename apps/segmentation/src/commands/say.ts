/** Results go to stdout, everything else to stderr. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
