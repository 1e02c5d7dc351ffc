// Series as the server sends them (server/frames.py): a JSON header, then 64-bit floats.

export interface Frame<Header> {
  header: Header;
  arrays: Float64Array[];
}

export function decode<Header>(data: ArrayBuffer): Frame<Header> {
  const length = new DataView(data).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(data, 4, length));
  const header = JSON.parse(text) as Header & { arrays: number[] };
  let offset = 4 + length;
  const arrays = header.arrays.map((count) => {
    const array = new Float64Array(data, offset, count);
    offset += count * 8;
    return array;
  });
  return { header, arrays };
}
