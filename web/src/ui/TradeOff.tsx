// Two metrics against each other: a point for each cell, which opens its runs.

import { useEffect, useState } from "react";
import type { StudyCell, StudyResults } from "../backend/backend";
import { scaleOf, shown, ticksAround, unbroken } from "../core/quantity";
import { cellName, inSentence, kindsOf, mean, titleOf, unitOf } from "../core/study";

interface Props {
  found: StudyResults;
  metrics: string[];
  /** The metric upwards, that of the table above. */
  metric: string;
  open: (cell: StudyCell) => void;
}

/** There are ten colours: beyond them the shape tells values apart. */
const SHAPES = ["round", "square", "diamond"];
const shapeOf = (index: number) => SHAPES[Math.floor(index / 10) % SHAPES.length]!;

// The text keeps its size: a narrow window has a narrower drawing.
const [WIDEST, HEIGHT, LEFT, BOTTOM, PAD] = [700, 340, 64, 40, 14];

export function TradeOff({ found, metrics, metric, open }: Props) {
  const [chosen, setChosen] = useState<string>();
  const [width, setWidth] = useState(WIDEST);
  const [figure, setFigure] = useState<HTMLElement | null>(null);
  useEffect(() => {
    if (!figure) return;
    const watch = new ResizeObserver(([seen]) => setWidth(Math.max(200, Math.min(WIDEST, seen!.contentRect.width))));
    watch.observe(figure);
    return () => watch.disconnect();
  }, [figure]);
  const across = chosen ?? metrics.find((name) => name.startsWith("rtt") && name !== metric) ?? metrics.find((name) => name !== metric);
  if (!across) return null;
  const points = found.cells.flatMap((cell) => {
    const [x, y] = [mean(found, cell, across), mean(found, cell, metric)];
    return x === undefined || y === undefined ? [] : [{ cell, x, y }];
  });
  if (!points.length) return null;
  // Round in the unit that is written.
  const axisFor = (name: string, values: number[]) => {
    const { divide, unit } = scaleOf(unitOf(found, name), Math.max(0, ...values));
    const ticks = ticksAround(Math.min(...values) / divide, Math.max(...values) / divide);
    const [first, last] = [ticks[0]!, ticks[ticks.length - 1]!];
    return {
      ticks,
      share: (value: number) => (value / divide - first) / (last - first),
      title: unit ? `${titleOf(found, name)} (${unit})` : titleOf(found, name),
    };
  };
  const axisX = axisFor(across, points.map(({ x }) => x));
  const axisY = axisFor(metric, points.map(({ y }) => y));
  const atX = (share: number) => LEFT + share * (width - LEFT - PAD);
  const atY = (share: number) => HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - PAD);
  const tickX = (index: number) => atX(index / (axisX.ticks.length - 1));
  const tickY = (index: number) => atY(index / (axisY.ticks.length - 1));
  const { values, of } = kindsOf(found);
  const [titleX, titleY] = [titleOf(found, across), titleOf(found, metric)];
  return (
    <figure className="trade-off" ref={setFigure}>
      <figcaption>
        <label>
          {titleY} against
          <select value={across} onChange={(event) => setChosen(event.target.value)}>
            {metrics
              .filter((name) => name !== metric)
              .map((name) => (
                <option key={name} value={name} title={found.metrics[name]?.about}>
                  {titleOf(found, name)}
                </option>
              ))}
          </select>
        </label>
        {values.map((name, index) => (
          <span key={name} className={`of-link flow-${index % 10}`}>
            <span className={`swatch ${shapeOf(index)}`} aria-hidden="true" /> {unbroken(name)}
          </span>
        ))}
      </figcaption>
      <svg width={width} height={HEIGHT} role="group" aria-label={`${titleY} against ${inSentence(titleX)}`}>
        {axisX.ticks.map((tick, index) => (
          <g key={`x ${tick}`}>
            <line className="grid" x1={tickX(index)} x2={tickX(index)} y1={PAD} y2={HEIGHT - BOTTOM} />
            <text x={tickX(index)} y={HEIGHT - BOTTOM + 14} textAnchor="middle">
              {tick}
            </text>
          </g>
        ))}
        {axisY.ticks.map((tick, index) => (
          <g key={`y ${tick}`}>
            <line className="grid" x1={LEFT} x2={width - PAD} y1={tickY(index)} y2={tickY(index)} />
            <text x={LEFT - 6} y={tickY(index) + 4} textAnchor="end">
              {tick}
            </text>
          </g>
        ))}
        <text x={(LEFT + width) / 2} y={HEIGHT - 6} textAnchor="middle">
          {axisX.title}
        </text>
        <text transform={`translate(12 ${(HEIGHT - BOTTOM) / 2}) rotate(-90)`} textAnchor="middle">
          {axisY.title}
        </text>
        {points.map(({ cell, x, y }) => {
          const label = `${cellName(cell)}: ${titleY} ${shown(y, unitOf(found, metric))}, ${inSentence(titleX)} ${shown(x, unitOf(found, across))}`;
          const index = values.indexOf(of(cell));
          const shape = shapeOf(Math.max(0, index));
          const turn = shape === "diamond" ? " rotate(45)" : "";
          return (
            <rect
              key={cell.cell}
              className={index < 0 ? undefined : `flow-${index % 10}`}
              transform={`translate(${atX(axisX.share(x))} ${atY(axisY.share(y))})${turn}`}
              x={-5}
              y={-5}
              width={10}
              height={10}
              rx={shape === "round" ? 5 : 0}
              tabIndex={0}
              role="button"
              aria-label={label}
              onClick={() => open(cell)}
              onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), open(cell))}
            >
              <title>{label}</title>
            </rect>
          );
        })}
      </svg>
    </figure>
  );
}
