// The name of a result in a list.

/** Its scenario; where its directory was named by hand (`--output`), that name, which tells results of one scenario apart. */
export function resultName({ path, name }: { path: string; name: string }): string {
  const directory = path.split("/").pop()!;
  return /-\d{8}-\d{6}(-\d+)?$/.test(directory) ? name : directory;
}
