import type { ProgramContext } from "@halfstep/device";

/** Directives and body of a program. */
interface Parts {
  readonly directives: string;
  readonly body: string;
}

/**
 * A program whose lanes work together, for a device whose subgroups have the size that the program counts on: by nature, or because the
 * entry point pins it. A program that has the directive, as matrices need it, pins a size itself.
 */
export function withSubgroups(
  { directives, body }: Parts,
  { subgroupSize, hardware }: ProgramContext,
): Parts {
  const enabled = `enable subgroups;\n${directives}`;
  if (!hardware?.pinsSubgroups || directives.includes(sizeControl))
    return { directives: enabled, body };
  return {
    directives: `${enabled}${sizeControl}`,
    body: body.replace(
      /@workgroup_size\([^)]*\)/,
      (size) => `${size} @subgroup_size(${subgroupSize})`,
    ),
  };
}

const sizeControl = "enable subgroup_size_control;\n";
