#!/usr/bin/env bash
# pictures.sh BUILD_DIR [FOLDER]: records examples/torch/train.py and takes the pictures of the documents in marey view.
#
# Writes timeline*.png and view_*.png to FOLDER (docs/images). `make pictures` runs it. It takes a minute after
# the downloads. Run it on an otherwise idle machine, because the pictures show where the program had to wait for a core.
set -euo pipefail

cd "$(dirname "$0")/.."
build=$(realpath "${1:?usage: pictures.sh BUILD_DIR [FOLDER]}")
folder=${2:-docs/images}
. tools/viewers_env.sh
python=$(tools/python_env.sh torch)
mkdir -p "$folder"

trace=$MAREY_OUT/train.marey
# One thread: PyTorch's helper threads would add a track with a few very short ranges. In the folder, because the pictures
# show the command line.
cp examples/torch/train.py "$MAREY_OUT"
(cd "$MAREY_OUT" && PYTHONPATH=$build/python OMP_NUM_THREADS=1 TORCH_CPP_LOG_LEVEL=ERROR "$python" train.py train.marey)
node tools/pictures.mjs "$build/marey" "$trace" "$folder"
for picture in "$folder"/timeline*.png "$folder"/view_*.png; do
    if command -v pngquant >/dev/null; then
        pngquant --force --strip --speed 1 --output "$picture" 256 "$picture"
    fi
    echo "pictures: $picture: $(stat -c %s "$picture") bytes"
done
