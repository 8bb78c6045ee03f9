"""The people, places and things of the stories.

Every story draws from these lists; a plot file (plots/*.txt) may replace any of them with a list of its own.
"""

BOYS = "Tom Ben Sam Max Leo Dan Finn Jack Will Ned Hugo Otto".split()
GIRLS = "Mia Anna Lily Rose Nora Ella Ruby Ivy Kate Lucy Meg Emma Grace".split()

HE = {"he": "he", "him": "him", "his": "his", "self": "himself", "child": "boy"}
SHE = {"he": "she", "him": "her", "his": "her", "self": "herself", "child": "girl"}

# Grown-ups, as they are spoken of in the story.
MEN = ["the baker", "the farmer", "the miller", "the smith", "the postman", "the captain", "old Peter",
       "Uncle Joe", "the doctor"]
WOMEN = ["the teacher", "the painter", "the gardener", "the cook", "Aunt May", "old Martha",
         "the beekeeper"]

KIN = [("mother", SHE), ("father", HE), ("grandmother", SHE), ("grandfather", HE), ("aunt", SHE), ("uncle", HE),
       ("big sister", SHE), ("big brother", HE)]

# Where a house stands: told of the first time, and after that.
HOMES = [("by the river", "by the river"), ("near the mill", "near the mill"), ("on a green hill", "on the hill"),
         ("at the edge of the woods", "at the edge of the woods"), ("by the sea", "by the sea"),
         ("in a small village", "in the village"), ("next to the bakery", "next to the bakery"),
         ("in a quiet street", "in the street"), ("near the market", "near the market"),
         ("by a deep lake", "by the lake"), ("on a small farm", "on the farm"),
         ("in a house with a blue door", "in that part of town"),
         ("in a house with a red roof", "in that part of town"), ("at the end of a long road", "along the road"),
         ("in a valley full of sheep", "in the valley"), ("at the foot of the mountain", "at the foot of the mountain")]

# A place, and how one is there.
PLACES = [("the woods", "in the woods"), ("the river", "by the river"), ("the hill", "on the hill"),
          ("the market", "at the market"), ("the barn", "behind the barn"), ("the mill", "near the mill"),
          ("the lake", "by the lake"), ("the old bridge", "near the old bridge"), ("the meadow", "in the meadow"),
          ("the harbor", "at the harbor"),
          ("the school", "behind the school"), ("the church", "near the church"), ("the beach", "on the beach"),
          ("the inn", "outside the inn")]

SKIES = {"spring": ["fresh", "mild", "rainy", "bright", "windy"],
         "summer": ["hot", "sunny", "warm", "dry", "golden"],
         "autumn": ["misty", "windy", "cool", "gray", "wet"],
         "winter": ["cold", "snowy", "icy", "dark", "gray"]}
SIGNS = {"spring": ["the first flowers were out", "the birds sang all day", "the apple trees were white",
                    "the lambs played in the fields", "the rain fell softly", "the grass was new and green"],
         "summer": ["the bees were busy", "the corn stood high", "the dust lay on the roads", "the berries were sweet",
                    "the days were long", "the birds flew high"],
         "autumn": ["the leaves were turning red", "the wind shook the trees", "the nuts fell from the trees",
                    "smoke rose from the chimneys", "the fields were bare", "the geese flew south"],
         "winter": ["snow lay on the roofs", "the river was covered with ice", "the nights were long",
                    "ice hung from the roofs", "the roads were white", "every window was white with ice"]}

COATS = ["gray", "brown", "white", "black", "spotted", "small", "young", "fat", "gentle", "lazy", "clever"]
PETS = ["dog", "cat", "goat", "pony", "duck", "rabbit", "lamb", "donkey", "goose", "puppy"]
PET_NAMES = "Patch Pip Daisy Biscuit Pepper Button Clover Toby Honey Smoky".split()
WILD = ["fox", "owl", "hedgehog", "squirrel", "crow", "frog", "deer", "badger", "robin"]
COLORS = ["red", "blue", "green", "yellow", "silver", "brown", "white", "golden"]
TOYS = ["kite", "ball", "boat", "drum", "whistle", "top", "doll", "sled", "wagon", "flute"]
FOODS = ["bread", "cheese", "plums", "nuts", "honey cakes", "apples", "pears", "berries", "soup", "pancakes",
         "carrots", "cherry pie", "roast corn", "cookies"]
# What can be made in a kitchen.
DISHES = ["soup", "bread", "pancakes", "honey cakes", "cherry pie", "roast corn", "cookies"]
TRAITS = ["kind to everyone", "always in a hurry", "good with {his} hands", "a little shy",
          "brave for {his} age", "full of questions", "fond of long walks", "never late for supper", "always singing",
          "fond of old stories", "faster than all {his} friends",
          "always hungry", "careful with {his} things", "good at climbing trees"]
CHORES = ["feeding the hens", "sweeping the steps", "carrying water", "picking berries", "washing the dishes",
          "mending a fence", "sitting under a tree", "cutting wood", "looking at the clouds", "brushing the horse",
          "watering the beans", "eating {food}", "reading an old book", "tying {his} boots"]
GAMES = ["hide and seek", "marbles", "tag", "cards", "catch", "pirates", "chess"]
DREAMS = ["ships and far islands", "a sky full of kites", "green hills", "a warm fire", "dancing bears",
          "a river of honey", "long roads", "tall trees", "a kind giant", "a garden in the moon", "singing fish",
          "flying horses", "the sound of the sea",
          "a thousand lanterns"]
FEELINGS = ["glad", "happy", "cheerful", "merry"]
