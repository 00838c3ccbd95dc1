/** Calls that write a file in place, so that a full disk leaves a partial file. */
const writing =
  /\b(?:writeFile|writeFileSync|createWriteStream|appendFile|appendFileSync|copyFile|copyFileSync|cpSync|toFile|writeSafetensorsFile)\(|\bopen(?:Sync)?\([^)\n]*,\s*["'][wa]|\bO_(?:WRONLY|RDWR|CREAT|APPEND)\b/g;

/** The lines of a source that write files themselves. @param {string} source */
export const writersIn = (source) =>
  source
    .split("\n")
    .flatMap((line, i) =>
      !/^\s*(\/\/|\*|\/\*)/.test(line) &&
      !/\bfunction\s|^import\b/.test(line) &&
      line.search(writing) >= 0
        ? [i + 1]
        : [],
    );
