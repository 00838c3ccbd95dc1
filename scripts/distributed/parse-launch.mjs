import { existsSync } from "node:fs";
import { join } from "node:path";

const usage =
  "npm run distributed -- -n 2 APP [flags of the app], such as: -n 2 images DIR --fp16 --dynamic-loss-scale";

/**
 * The command line of `npm run distributed`.
 * @param {readonly string[]} args
 * @param {string} apps the folder of all apps
 * @returns {{ ranks: number, app: string, args: string[] } | { wrong: string }} `args` are those of the app
 */
export const parseLaunch = (args, apps) => {
  const rest = [...args];
  let ranks = "2";
  for (;;) {
    const match = /^(?:-n|-np|--nproc[_-]per[_-]node)(?:=(.*))?$/.exec(rest[0] ?? "");
    if (match === null) break;
    rest.shift();
    ranks = match[1] ?? rest.shift() ?? "";
  }
  const [app = "", ...own] = rest;
  if (!/^[1-9]\d*$/.test(ranks))
    return { wrong: `${ranks || "nothing"} is no number of ranks: ${usage}` };
  if (!/^[\w-]+$/.test(app) || !existsSync(join(apps, app, "src", "main.ts")))
    return { wrong: `${app === "" ? "no app is named" : `there is no app ${app}`}: ${usage}` };
  return { ranks: Number(ranks), app, args: own };
};
