import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { installCommands } from "./install-packages.mjs";

// How to get Mesa's software Vulkan driver (lavapipe), decided from plain data: `machine()` reads, `driverPlan` decides.

/**
 * The fields of an os-release file, unquoted.
 * @param {string} text
 * @returns {Record<string, string>}
 */
export const parseOsRelease = (text) =>
  Object.fromEntries(
    [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, key, value]) => [
      key,
      value.trim().replace(/^(["'])(.*)\1$/, "$2"),
    ]),
  );

const read = (path) => (existsSync(path) ? readFileSync(path, "utf8") : "");

/** The fields of this machine's os-release. */
export const osRelease = () => parseOsRelease(read("/etc/os-release"));

/** The facts about this machine for `driverPlan`. */
export const machine = () => {
  const folder = "/etc/apt/sources.list.d";
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  return {
    platform: process.platform,
    root: process.getuid?.() === 0,
    home: Boolean(process.env.XDG_CACHE_HOME || process.env.HOME),
    mayInstall: !["1", "true"].includes(process.env.HALFSTEP_NO_INSTALL ?? ""),
    apt: existsSync("/usr/bin/apt-get"),
    os: osRelease(),
    sources: [
      read("/etc/apt/sources.list"),
      ...names
        .filter((name) => /\.(list|sources)$/.test(name))
        .map((name) => read(join(folder, name))),
    ],
  };
};

/** The stanzas of a deb822 file as lists of [field, value] (values keep their continuation lines). */
const stanzas = (text) =>
  text
    .split(/\n\s*\n/)
    .map((stanza) => {
      const fields = [];
      for (const line of stanza.split("\n")) {
        if (line.startsWith("#") || line.trim() === "") continue;
        if (/^\s/.test(line) && fields.length > 0) fields.at(-1)[1] += `\n${line}`;
        else
          fields.push([line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
      }
      return fields;
    })
    .filter((fields) => fields.length > 0);

const words = (text = "") => text.split(/\s+/).filter(Boolean);

const fromDeb822 = (text, suite) => {
  for (const fields of stanzas(text)) {
    const field = (name) => fields.find(([key]) => key.toLowerCase() === name)?.[1];
    if (field("enabled")?.toLowerCase() === "no" || !words(field("types")).includes("deb"))
      continue;
    if (words(field("suites")).includes(`${suite}-backports`)) return { present: true };
    if (!words(field("suites")).includes(suite)) continue;
    const changed = { types: "deb", suites: `${suite}-backports`, components: "main" };
    const lines = fields.map(([key, value]) => `${key}: ${changed[key.toLowerCase()] ?? value}`);
    return { extension: "sources", text: `${lines.join("\n")}\n` };
  }
  return undefined;
};

const fromOneLine = (text, suite) => {
  let found;
  for (const line of text.split("\n")) {
    const match = /^\s*deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+\S/.exec(line);
    if (match === null) continue;
    const [, options = "", uri, lineSuite] = match;
    if (lineSuite === `${suite}-backports`) return { present: true };
    if (lineSuite === suite) {
      found ??= { extension: "list", text: `deb ${options}${uri} ${suite}-backports main\n` };
    }
  }
  return found;
};

/**
 * An apt source for `SUITE-backports` from the mirror that the machine already uses for SUITE.
 * @param {readonly string[]} sources the texts of its sources files, deb822 or one-line style
 * @param {string} suite such as `bookworm`
 * @returns {{ present: true } | { extension: "sources" | "list", text: string } | undefined} undefined when no file names the suite
 */
export const backportsSource = (sources, suite) => {
  const found = sources.map((text) =>
    /^\s*Types\s*:/im.test(text) ? fromDeb822(text, suite) : fromOneLine(text, suite),
  );
  return found.find((source) => source?.present) ?? found.find((source) => source !== undefined);
};

const indent = (text) => text.trimEnd().replace(/^(?=.)/gm, "    ");
/** The apt steps for this distribution, or a sentence that says why there are none. */
const aptSteps = ({ os, sources }) => {
  const pkg = "mesa-vulkan-drivers";
  const plain = {
    files: [],
    commands: installCommands([pkg]),
    release: "",
  };
  const like = [os.ID, ...words(os.ID_LIKE)];
  if (os.ID === "debian" && Number(os.VERSION_ID) < 12) {
    return `Debian ${os.VERSION_ID} has no Mesa that Dawn accepts: Debian 12 or newer is needed.`;
  }
  if (os.ID === "debian" && os.VERSION_ID === "12") {
    const source = backportsSource(sources, "bookworm");
    if (source === undefined) {
      return "Debian 12's own Mesa is too old and no apt source for bookworm was found: add bookworm-backports by hand.";
    }
    return {
      files: source.present
        ? []
        : [
            {
              path: `/etc/apt/sources.list.d/halfstep-backports.${source.extension}`,
              text: source.text,
              why: "Debian 12's own Mesa (22.3) is refused by Dawn, backports has a newer one",
            },
          ],
      commands: installCommands([pkg], { release: "bookworm-backports" }),
      release: "bookworm-backports",
    };
  }
  if (like.includes("debian") || like.includes("ubuntu")) return plain;
  const command = like.map((id) => otherCommands[id]).find(Boolean);
  return command
    ? `Mesa's software Vulkan driver would do; as root: ${command}`
    : "Install your distribution's software Vulkan driver: Mesa's lavapipe, and the Vulkan loader.";
};

/** The command that installs the driver and Vulkan's loader, by what os-release calls a system or what it is like. */
const otherCommands = {
  fedora: "dnf install -y mesa-vulkan-drivers vulkan-loader",
  arch: "pacman -S --needed vulkan-swrast vulkan-icd-loader",
  alpine: "apk add mesa-vulkan-swrast vulkan-loader",
  suse: "zypper install -y libvulkan_lvp libvulkan1",
};

/**
 * The plan for a missing adapter: to install the driver, or to unpack it into the user's cache where the user is not root. The
 * instructions are for people; their first line is complete by itself.
 * @param {ReturnType<typeof machine>} machine
 * @returns {{ kind: "install" | "unpack" | "instruct", instructions: string[], why?: string, files?: { path: string, text: string, why: string }[], commands?: { command: string, args: string[] }[], sources?: string[], release?: string }}
 */
export const driverPlan = ({ platform, root, home, mayInstall, apt, os, sources }) => {
  const instruct = (...instructions) => ({ kind: "instruct", instructions });
  if (platform !== "linux") {
    return instruct("Dawn uses the system's Metal or Direct3D 12: update the graphics driver.");
  }
  const steps = aptSteps({ os, sources });
  if (typeof steps === "string") return instruct(steps);
  if (!apt) {
    return instruct(
      "apt-get is not here: install Mesa's software Vulkan driver (lavapipe) by hand.",
    );
  }
  const byHand = [
    ...steps.files.map(({ path, text }) => `write ${path}:\n${indent(text)}`),
    ...steps.commands.map(({ command, args }) => indent([command, ...args].join(" "))),
  ];
  const forbidden = mayInstall
    ? "Mesa's software Vulkan driver would do; installing it needs root."
    : "Mesa's software Vulkan driver would do; HALFSTEP_NO_INSTALL forbids installing it.";
  if (!mayInstall || (!root && !home)) return instruct(forbidden, "As root:", ...byHand);
  const why = "Mesa's software Vulkan driver will do";
  if (root) return { kind: "install", why, instructions: byHand, ...steps };
  return {
    kind: "unpack",
    why,
    instructions: byHand,
    sources: [...sources, ...steps.files.map(({ text }) => text)].filter((text) => text !== ""),
    release: steps.release,
  };
};
