// Names and times of results in a list.

/** Its scenario; where its directory was named by hand (`--output`), that name, which tells results of one scenario apart. */
export function resultName({ path, name }: { path: string; name: string }): string {
  const directory = path.split("/").pop()!;
  return /-\d{8}-\d{6}(-\d+)?$/.test(directory) ? name : directory;
}

/** The name of a study's result, and when it began where its directory says so. */
export function studyResult(path: string): { name: string; started: string } {
  const directory = path.split("/").pop()!;
  const found = /^study-(.+)-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)(-\d+)?$/.exec(directory);
  if (!found) return { name: directory, started: "" };
  const [, name, year, month, day, hour, minute, second] = found;
  return { name: name!, started: `${year}-${month}-${day}T${hour}:${minute}:${second}` };
}

/** When something began: the time of today to the second, of another day to the minute. */
export function when(started: string, now = new Date()): string {
  const date = new Date(started);
  if (!started || Number.isNaN(date.getTime())) return "";
  if (date.toDateString() === now.toDateString()) return date.toLocaleTimeString("en-GB");
  return date.toLocaleString("en-GB", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}
